package framesize_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/framesize"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// bodies by their media type.
var bodies = map[string][]string{
	"":                                  {`"a"`, `{"text":"a\"b"}`, `["` + strings.Repeat("x", 5000) + `"]`},
	agora.MediaText:                     {"", "plain", "\x00\x1f\"\\\n\r\t\x7fé😀", strings.Repeat("\"", 999)},
	"image/png":                         {"\x00\xff", strings.Repeat("\x80", 1000)},
	agora.ItemMedia("image/*", 1<<32-1): {strings.Repeat("\x80", 1000)},
}

func TestNoFrameIsLargerThanItIsMeasured(t *testing.T) {
	names := []string{"a", "an \"odd\" name\x01", strings.Repeat("é", 128)}
	for media, all := range bodies {
		for _, body := range all {
			for i := range 64 {
				name := names[i%3]
				m := agora.Message{
					Kind: agora.Kind(i % 3), Part: agora.Part(i % 4), Stream: name, From: agora.AgentID(names[i/2%3]), To: agora.Address{Agent: agora.AgentID(name)},
					ID: name + "\x00hash", Session: strings.Repeat("S", 16), Seq: agora.MaxSeq - 1, Body: []byte(body), Media: media, Indexed: i&8 != 0, Index: 1<<32 - 2,
				}
				if i&16 != 0 {
					m.N = 1<<64 - 1
				}
				if i&32 != 0 {
					m.Meta = agora.Meta{Trace: strings.Repeat("t", 55), Parent: name, Request: name}
				} else {
					m.Meta.Call = "box"
				}
				if m.Kind == agora.Event {
					m.To = agora.ToSpace("", "room")
				}
				holds(t, &m)
			}
		}
	}
}

// holds holds the measure of a message against its frames.
func holds(t *testing.T, m *agora.Message) {
	t.Helper()
	size := framesize.Of(m)
	late := time.Now().UnixMilli()
	if f := wire.AppendMessage(nil, m, wire.Delivery{Redelivered: true, DeadlineMS: late}); len(f) > size || len(m.Body) < framesize.Small(len(f)) {
		t.Errorf("a frame of %d bytes is measured as %d: %.300s", len(f), size, f)
	} else if m.Kind != agora.Event && len(f) < size/2-2*around {
		t.Errorf("a frame of %d bytes is measured as %d: %.300s", len(f), size, f)
	}
	if !iat.Shows(m) {
		return
	}
	if f := iat.AppendEnvelope(nil, m, iat.Delivery{Redelivered: true, DeadlineMS: late, Time: time.Now()}); len(f) > size {
		t.Errorf("an envelope of %d bytes is measured as %d: %.300s", len(f), size, f)
	}
}

// around is more than stands around the body of a frame without long names.
const around = 1024

func TestWhatIsSmallFits(t *testing.T) {
	for _, most := range []int{64 << 10, 1 << 20} {
		name := strings.Repeat("\x01", 1024)
		m := agora.Message{Part: agora.Chunk, From: agora.AgentID(name), Stream: name, ID: name, Media: agora.MediaText, Body: []byte(strings.Repeat("\x01", framesize.Small(most)))}
		if size := framesize.Of(&m); size > most {
			t.Errorf("what is small in %d bytes is measured as %d", most, size)
		}
	}
}
