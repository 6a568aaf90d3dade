package web

import "golang.org/x/sys/unix"

// Written returns how many bytes of all that was written to the connection the peer's system is to have acknowledged,
// so that it has all of it that was written until now; false where nobody can tell.
func (r Reach) Written() (bytes uint64, ok bool) {
	acked, queued, ok := r.look()
	return acked + queued, ok
}

// Acked returns how many bytes the peer's system has acknowledged; false where nobody can tell, or the connection is
// closed.
func (r Reach) Acked() (bytes uint64, ok bool) {
	acked, _, ok := r.look()
	return acked, ok
}

func (r Reach) look() (acked, queued uint64, ok bool) {
	if r.raw == nil {
		return 0, 0, false
	}
	err := r.raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		if err != nil {
			return
		}
		// A segment may be acknowledged between the two questions: then less is waited for.
		acked, queued, ok = info.Bytes_acked, uint64(n), true
	})
	return acked, queued, ok && err == nil
}
