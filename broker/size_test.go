package broker

import (
	"testing"
	"unsafe"
)

// An edge listens to tens of thousands of addresses, of most of which nothing is heard: what only reading takes is to be had while it lasts.
func TestAnInboxIsSmall(t *testing.T) {
	const most = 400
	if size := unsafe.Sizeof(Inbox{}) + unsafe.Sizeof(topic{}); size > most {
		t.Errorf("an inbox and its subject take %d bytes, want %d at most", size, most)
	}
}
