package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/agora-relay/agora/client"
)

// Item is a message as it stands now.
type Item struct {
	Seq         uint64          // position in the mailbox
	From        string          //
	IsReply     bool            // a reply, not a message or a request
	RequestID   string          // the request that it makes or answers; empty for none
	Payload     json.RawMessage // as it was sent; nil for none
	Media       string          // media type of what Payload is a string of base64 of; empty where it is JSON
	Text        string          // of a stream, as far as it has come
	Streaming   bool            // more of Text is to come
	End         json.RawMessage // what a stream ended with; nil for none
	Broken      string          // why a stream had no normal end; empty where it had, or has none yet
	GivenUp     bool            // its sender waits for an answer no more
	Deadline    time.Time       // when its sender stops waiting; zero: not known
	Redelivered bool            // an earlier run may have had it
	Received    time.Time       // when it came here
}

// entry is a message that is held. The inbox's lock guards what is not constant.
type entry struct {
	m        *client.Message
	received time.Time
	release  context.CancelFunc // of the watch over who waits for an answer

	text    strings.Builder
	done    bool // nothing more comes
	end     json.RawMessage
	broken  string
	givenUp bool
	shown   bool // List has returned it
	given   bool // Await has returned it
	gone    bool // it is acknowledged
}

// size is what an entry counts.
func (e *entry) size() int { return len(e.m.Payload) + e.text.Len() + len(e.end) + 512 }

// item returns what there is of it. The lock is held.
func (e *entry) item() Item {
	m := e.m
	return Item{
		Seq: m.Seq, From: m.From, IsReply: m.IsReply, RequestID: m.RequestID(), Payload: m.Payload, Media: m.Media,
		Text: e.text.String(), Streaming: !e.done, End: e.end, Broken: e.broken, GivenUp: e.givenUp,
		Deadline: m.Deadline, Redelivered: m.Redelivered, Received: e.received,
	}
}

func (b *Inbox) item(e *entry) Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.item()
}

// free ends what watches over an entry.
func (e *entry) free() {
	if e.release != nil {
		e.release()
	}
}

// add takes a message in. Of a request it is noted when its sender gives it up.
func (b *Inbox) add(ctx context.Context, m *client.Message) *entry {
	e := &entry{m: m, received: time.Now(), done: !m.Stream}
	if !m.IsReply && m.RequestID() != "" {
		asked, free := m.Context(ctx)
		stop := context.AfterFunc(asked, func() { b.abandoned(e, context.Cause(asked)) })
		e.release = func() { stop(); free() }
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, e)
	b.bytes += e.size()
	b.change()
	return e
}

// abandoned notes that nobody waits for the answer to a request.
func (b *Inbox) abandoned(e *entry, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(why, client.ErrCancelled) || errors.Is(why, context.DeadlineExceeded) {
		e.givenUp = true
		b.change()
	}
}

// read takes the text of a stream as it comes, until its end or that of ctx.
func (b *Inbox) read(ctx context.Context, e *entry) {
	for {
		text, err := e.m.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		if !b.grow(e, text, err) {
			break
		}
	}
	e.m.Close()
	b.mu.Lock()
	gone, it := e.gone, e.item()
	b.mu.Unlock()
	if !gone {
		b.cfg.OnNews(it)
	}
}

// grow takes a piece of a stream, or its end. It reports whether more is wanted.
func (b *Inbox) grow(e *entry, text string, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.change()
	if e.gone {
		e.done = err != nil // the rest is for nobody
		return err == nil
	}
	b.bytes -= e.size()
	defer func() { b.bytes += e.size() }()
	switch {
	case err == io.EOF:
		e.done, e.end = true, e.m.EndPayload()
	case err != nil:
		e.done, e.broken = true, err.Error()
	case e.text.Len()+len(text) > b.cfg.MaxText || b.bytes > 2*b.cfg.MaxBytes:
		e.done, e.broken = true, "the rest was too much to be held and was given up"
	default:
		e.text.WriteString(text)
		return true
	}
	return false
}
