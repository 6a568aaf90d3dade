package endpoint

import (
	"errors"
	"syscall"
)

// takenOnWindows is what Windows calls EADDRINUSE, WSAEADDRINUSE: no system has another error of that number.
const takenOnWindows = syscall.Errno(10048)

// Taken reports whether an error of a listener says that another one has the port.
func Taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, takenOnWindows)
}
