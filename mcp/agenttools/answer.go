package agenttools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Bounds of the result of a call.
const (
	maxText   = 64 << 10 // bytes of text; the rest is cut, and the result says so
	maxMedia  = 4 << 20  // bytes of images, audio and files; what goes beyond is left out, and the result says so
	maxBlocks = 64       // images, audio and files
)

// answer collects what a tool answers and becomes the result of the call. It belongs to one goroutine.
type answer struct {
	blocks []mcp.Content
	text   strings.Builder // behind the blocks
	kept   int             // bytes of text that are kept
	whole  int             // bytes of text that came

	item  uint64 // the number of the item of which parts come; 0 for none
	media string // its media type
	data  []byte // its parts so far

	size, files int // bytes and number of the media that are kept
	left        int // of those that are not

	value json.RawMessage // the result's JSON, where it is no string and not larger than maxText
	last  string          // the text that was added last
}

// add takes in a piece of the answer, or the result.
func (w *answer) add(a client.Answer) {
	if a.Item == 0 || a.Item != w.item {
		w.endItem()
	}
	b, err := a.Bytes()
	switch {
	case err != nil:
		w.left++
	case a.Media != "" && a.Item > 0:
		w.item, w.media = a.Item, a.Media
		if len(w.data) <= maxMedia { // one that is larger is left out as a whole
			w.data = append(w.data, b...)
		}
		w.last = ""
	case a.Media != "":
		w.addMedia(a.Media, b)
	case len(a.Body) > 0:
		w.addText(string(b), a.Body[0] == '"')
	}
}

// end takes in the result behind the pieces.
func (w *answer) end(a client.Answer) {
	if a.Media == "" && len(a.Body) > 0 && a.Body[0] == '"' && rawjson.Halved(a.Body) { // as text it would be another one
		w.addText(string(a.Body), false)
	} else {
		w.add(a)
	}
	w.endItem()
	if body := bytes.TrimSpace(a.Body); a.Media == "" && len(body) > 0 && body[0] != '"' && len(body) <= maxText {
		w.value = body
	}
}

func (w *answer) endItem() {
	if w.item > 0 {
		w.addMedia(w.media, w.data)
	}
	w.item, w.media, w.data = 0, "", nil
}

func (w *answer) addMedia(media string, data []byte) {
	if isText(media) && utf8.Valid(data) {
		w.addText(string(data), false)
		return
	}
	w.last = fmt.Sprintf("[%s, %d bytes]", media, len(data))
	if w.size+len(data) > maxMedia || w.files == maxBlocks {
		w.left++
		return
	}
	w.flush()
	w.size += len(data)
	w.files++
	w.blocks = append(w.blocks, mediaContent(media, data, w.files))
}

// addText adds text: behind that of before where it continues with it, as the pieces of a streamed text do, else on a
// new
// line.
func (w *answer) addText(s string, goesOn bool) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !goesOn && w.text.Len() > 0 {
		s = "\n" + s
	}
	w.last = s
	room := maxText - w.kept
	if w.whole > w.kept { // it is cut already
		room = 0
	}
	w.whole += len(s)
	if len(s) > room {
		s = strings.ToValidUTF8(s[:room], "")
	}
	w.kept += len(s)
	w.text.WriteString(s)
}

// flush makes a block of the text that stands behind the blocks.
func (w *answer) flush() {
	if w.text.Len() > 0 {
		w.blocks = append(w.blocks, &mcp.TextContent{Text: w.text.String()})
		w.text.Reset()
	}
}

// result returns the result of the call, with a problem behind it where it has failed.
func (w *answer) result(problem string) *mcp.CallToolResult {
	w.endItem()
	w.flush()
	r := &mcp.CallToolResult{Content: w.blocks, IsError: problem != ""}
	say := func(format string, args ...any) {
		r.Content = append(r.Content, &mcp.TextContent{Text: fmt.Sprintf(format, args...)})
	}
	if w.whole > w.kept {
		say("The answer is cut: it has %d bytes of text, and the first %d are shown. Call the tool again for less at a time.", w.whole, w.kept)
	}
	if w.left > 0 {
		say("%d files of the answer are left out, as they are too large, too many or damaged.", w.left)
	}
	if problem != "" {
		say("%s", problem)
	} else if len(r.Content) == 0 {
		say("The tool is done; it returned nothing.")
	}
	if problem == "" && len(w.value) > 0 && w.value[0] == '{' {
		r.StructuredContent = w.value
	}
	return r
}
