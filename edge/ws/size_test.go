package ws

import (
	"testing"
	"unsafe"
)

// An edge has tens of thousands of connections, most of which are quiet.
func TestAConnectionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(conn{}); size > 352 {
		t.Errorf("a connection takes %d bytes, want 352 at most", size)
	}
}
