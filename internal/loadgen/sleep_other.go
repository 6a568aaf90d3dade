//go:build !linux

package loadgen

import "time"

func sharpen() {}

func sleep(d time.Duration) { time.Sleep(d) }
