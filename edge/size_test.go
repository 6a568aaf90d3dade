package edge

import (
	"testing"
	"unsafe"
)

// An edge has tens of thousands of sessions, most of which do nothing: what only some of them need is to be made when
// they do.
func TestASessionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 672 {
		t.Errorf("a session takes %d bytes before anything comes into it, want 672 at most", size)
	}
}
