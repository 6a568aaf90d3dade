package spaces

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora"
)

func TestEncodedIsMadeOncePerEncoding(t *testing.T) {
	e := newEvent(agora.Message{Body: []byte("x")})
	type door struct{ version int }
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for v := range 2 {
				b := e.Encoded(door{v}, func(e *Event) []byte { made.Add(1); return append([]byte{'0' + byte(v)}, e.Body...) })
				if want := string(rune('0'+v)) + "x"; string(b) != want {
					t.Errorf("Encoded = %q, want %q", b, want)
				}
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n != 2 {
		t.Errorf("encoded %d times, want once for each of 2 encodings", n)
	}
}

func TestEncodedOfACopyIsItsOwn(t *testing.T) {
	e := newEvent(agora.Message{Body: []byte("x")})
	mark := func(e *Event) []byte {
		if e.Redelivered {
			return []byte("again")
		}
		return []byte("first")
	}
	if got := string(e.Encoded("k", mark)) + " " + string(e.again().Encoded("k", mark)); got != "first again" {
		t.Errorf("frames = %q, want %q", got, "first again")
	}
}
