// Package framesize bounds the size of the frames of JSON in which doors deliver messages.
package framesize

import (
	"encoding/base64"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

const (
	around  = 320     // bytes of a frame at most, in any dialect, that stand for neither the body nor a name
	spelled = 6       // bytes of JSON at most that stand for a byte of text
	names   = 8 << 10 // bytes of text at most of all the names in a frame
)

// Small returns how large a body may be that fits into a frame of most bytes whatever stands in it and around it: below that nothing needs to be measured. It is
// negative where every body needs to be.
func Small(most int) int { return (most-around)/spelled - names }

// Of returns an upper bound of the frame in which a door delivers m: of its body in JSON, and of all that may stand around that, but for
// the [agora.Meta.Head], which doors of its own dialect alone write.
func Of(m *agora.Message) int {
	size := around + text(string(m.From), string(m.To.Agent), m.Stream, m.ID, m.Media, m.Meta.Parent, m.Meta.Request, m.Meta.Trace) + body(m)
	if m.To.IsSpace() {
		size += text(m.To.Space)
	}
	if m.N > 0 {
		size += numbered + len(m.Session)
	}
	return size
}

// numbered is what the number of a message takes, and the key of its session.
const numbered = 40

// text returns how much some names take; those that are empty are left out, with their keys.
func text(names ...string) (size int) {
	for _, name := range names {
		if name != "" {
			size += rawjson.TextSize([]byte(name))
		}
	}
	return size
}

// body returns an upper bound of what a body takes in JSON.
func body(m *agora.Message) int {
	switch {
	case m.Kind == agora.Roster:
		return roster(m)
	case m.Media == agora.MediaText, m.Media == "" && m.Part == agora.Chunk && len(m.Body) > 0 && m.Body[0] != '"': // JSON that becomes a string
		return rawjson.TextSize(m.Body)
	case m.Media == "":
		return len(m.Body)
	}
	return 2 + base64.StdEncoding.EncodedLen(len(m.Body))
}

// roster returns how much the names of a roster take.
func roster(m *agora.Message) int {
	r, err := m.RosterBody()
	if err != nil {
		return 0
	}
	size := text(string(r.Joined), string(r.Left)) + len(r.Members)
	for _, id := range r.Members {
		size += text(string(id))
	}
	return size
}
