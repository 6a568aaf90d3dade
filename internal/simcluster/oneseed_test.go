//go:build oneseed

package simcluster

import _ "unsafe" // for go:linkname

// setOneSeed is the runtime's: see internal/oneseed.
//
//go:linkname setOneSeed runtime.setOneSeed
func setOneSeed(seed uint64)

// exact tells that a history is the same whenever it is played.
const exact = true
