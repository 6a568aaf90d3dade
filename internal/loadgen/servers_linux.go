package loadgen

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hertz is the unit of times in /proc, which is the same on all machines that Go runs on.
const hertz = 100

// lookAt reads what a process takes from /proc.
func lookAt(pid int) (l Look, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Look{}, err
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // a name may have spaces
	if len(f) < 22 {
		return Look{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	pages, err3 := strconv.ParseInt(f[21], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return Look{}, fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	l.CPU = time.Duration(user+system) * time.Second / hertz
	l.RSS = pages * int64(os.Getpagesize())
	return l, nil
}

// selfUsage returns what this process has taken.
func selfUsage() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
