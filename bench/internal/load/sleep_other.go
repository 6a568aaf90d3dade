//go:build !linux

package load

import "time"

func sharply(f func())      { f() }
func sleep(d time.Duration) { time.Sleep(d) }
