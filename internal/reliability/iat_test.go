package reliability

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
)

// iatEdges are the IAT doors of a cluster, spoken to in bare HTTP. Its methods may be called at the same time.
type iatEdges struct {
	t    testing.TB
	at   []string // their addresses
	http http.Client
}

// iatEnvelope is what these tests read of an envelope.
type iatEnvelope struct {
	Header struct {
		ID     string `json:"msg_id"`
		Parent string `json:"parent_id"`
		Type   string
		From   string
	}
	Metadata struct{ Redelivered bool }
	Payload  struct {
		Action, Text string
		N            uint64 // of a notification
		K            int    // of a request, and of its response
		Error        struct{ Code agora.Code }
	}
}

func newIATEdges(t testing.TB, c *agoratest.Processes) *iatEdges {
	e := &iatEdges{t: t}
	for _, u := range c.URLs() {
		e.at = append(e.at, strings.TrimSuffix(strings.TrimPrefix(u, "ws://"), "/ws"))
	}
	e.http.Transport = &http.Transport{DisableKeepAlives: true}
	return e
}

// envelope returns an envelope, whose parent may be empty.
func envelope(id, kind, parent, from, to, payload string) string {
	if parent != "" {
		parent = `"parent_id":` + agoratest.Quote(parent) + `,`
	}
	return fmt.Sprintf(`{"header":{"msg_id":%q,%s"type":%q,"from":%q,"to":%q},"metadata":{},"payload":%s}`, id, parent, kind, from, to, payload)
}

// retryAfter is how long one waits that was refused, or whose edge is gone, before it tries the next edge.
const retryAfter = 20 * time.Millisecond

// open makes a request at edge k, which ends where nothing comes for as long as an agent believes in a silent edge. The
// code is that of a refusal, UNAVAILABLE also where the edge is gone.
func (e *iatEdges) open(ctx context.Context, k int, method, path, body string, header http.Header) (*iatBody, agora.Code) {
	ctx, cancel := context.WithCancel(ctx)
	b := &iatBody{cancel: cancel, watch: time.AfterFunc(silence, cancel)}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+e.at[k%len(e.at)]+path, strings.NewReader(body))
	if err != nil {
		e.t.Error(err)
		b.close()
		return nil, agora.InvalidRequest
	}
	r.Header = header
	resp, err := e.http.Do(r)
	if err != nil {
		b.close()
		return nil, agora.Unavailable
	}
	b.resp, b.lines = resp, bufio.NewReader(resp.Body)
	if resp.StatusCode < http.StatusMultipleChoices {
		return b, ""
	}
	defer b.close()
	text, cut := io.ReadAll(resp.Body)
	var f iatEnvelope
	if cut != nil {
		return nil, agora.Unavailable
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Payload.Error.Code == "" {
		e.t.Errorf("refused with %d %q", resp.StatusCode, text)
	}
	return nil, f.Payload.Error.Code
}

// iatBody is the answer to a request that was not refused.
type iatBody struct {
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
	watch  *time.Timer
}

func (b *iatBody) close() {
	b.watch.Stop()
	b.cancel()
	if b.resp != nil {
		_ = b.resp.Body.Close() // the request is over
	}
}

// iatEvent is one server-sent event.
type iatEvent struct{ id, name, data string }

// next returns the next event that is no comment; false when the connection has ended.
func (b *iatBody) next() (v iatEvent, ok bool) {
	for {
		line, err := b.lines.ReadString('\n')
		if err != nil {
			return v, false
		}
		b.watch.Reset(silence)
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); field {
		case "id":
			v.id = value
		case "event":
			v.name = value
		case "data":
			v.data += value
		case "":
			if v != (iatEvent{}) {
				return v, true
			}
		}
	}
}

// post says an envelope at edge k, and returns the code with which it was refused.
func (e *iatEdges) post(ctx context.Context, k int, text string) agora.Code {
	b, code := e.open(ctx, k, http.MethodPost, "/a2a", text, http.Header{"Content-Type": {"application/json"}})
	if code != "" {
		return code
	}
	defer b.close()
	if b.resp.StatusCode != http.StatusAccepted {
		e.t.Errorf("%.200s is answered %s, want 202", text, b.resp.Status)
	}
	return ""
}

// insist says an envelope, first at edge k and then at all others in turn, until it is stored or refused permanently.
func (e *iatEdges) insist(ctx context.Context, k int, text string) agora.Code {
	for {
		code := e.post(ctx, k, text)
		if code != agora.Unavailable || ctx.Err() != nil {
			return code
		}
		k++
		<-time.After(retryAfter)
	}
}

// iatAnswer is what came of a request that was POSTed once.
type iatAnswer struct {
	text  string     // of the chunks, in the order in which they came
	ended bool       // a response came
	code  agora.Code // with which it ended, empty where the response is its addressee's; UNAVAILABLE where the connection broke
	err   error      // what must not be
}

// ask POSTs request number number at edge k for events, or else for the response alone, and tells how far its chunks
// are each time that one comes.
func (e *iatEdges) ask(ctx context.Context, k, number int, text string, events bool, heard func(text string)) (a iatAnswer) {
	h := http.Header{"Content-Type": {"application/json"}}
	if events {
		h.Set("Accept", "text/event-stream")
	}
	b, code := e.open(ctx, k, http.MethodPost, "/a2a", text, h)
	if code != "" {
		return iatAnswer{ended: true, code: code}
	}
	defer b.close()
	if !events {
		whole, err := io.ReadAll(b.resp.Body)
		if err != nil {
			return iatAnswer{code: agora.Unavailable}
		}
		a.add(number, string(whole))
		return a
	}
	for v, ok := b.next(); ok && a.err == nil; v, ok = b.next() {
		a.add(number, v.data)
		heard(a.text)
	}
	if !a.ended {
		a.code = agora.Unavailable
	}
	return a
}

// add takes the next envelope of the answer.
func (a *iatAnswer) add(number int, data string) {
	var v iatEnvelope
	err := json.Unmarshal([]byte(data), &v)
	switch fault := v.Payload.Error.Code; {
	case err != nil:
		a.err = fmt.Errorf("%q: %w", data, err)
	case a.ended:
		a.err = fmt.Errorf("behind the response comes %q", data)
	case v.Header.Type == "chunk":
		a.text += v.Payload.Text
	case v.Header.Type != "response":
		a.err = fmt.Errorf("%q is no part of an answer", data)
	case fault != "":
		a.ended, a.code = true, fault
	case v.Payload.K != number:
		a.err = fmt.Errorf("request %d has the response %q", number, data)
	default:
		a.ended = true
	}
	if !strings.HasPrefix(answered, a.text) {
		a.err = errors.Join(a.err, fmt.Errorf("the chunks are %q", a.text))
	}
}

// persist POSTs a request, first at edge k and then at all others in turn, until it has ended, and returns what came of
// the last time. It asks before each try whether that is for events.
func (e *iatEdges) persist(ctx context.Context, k, number int, text string, events func(try int) bool, heard func(text string)) iatAnswer {
	for try := 0; ; try++ {
		chunks := events(try)
		a := e.ask(ctx, k+try, number, text, chunks, heard)
		switch {
		case ctx.Err() != nil:
			return iatAnswer{code: agora.Unavailable}
		case a.err == nil && a.code == agora.Unavailable:
			<-time.After(retryAfter)
			continue
		case a.err == nil && a.code == "" && chunks && a.text != answered:
			a.err = fmt.Errorf("the response came behind the chunks %q, want %q", a.text, answered)
		}
		return a
	}
}
