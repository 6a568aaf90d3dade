package agoratest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// outgoing is what a talker sends to one addressee.
type outgoing struct {
	talk    *Talk
	to      string // an agent; empty for the space
	line    *verify.Line
	next    uint64 // number to send next
	pause   time.Time
	created time.Time // when the last number was handed out
	refusal Frame     // the last error about it

	bulky, slim uint64 // chunks from the first number on, and before the other, are large
}

// window is how many frames may be unreceipted.
const window = 32

// streak is how many frames make one round: a one-shot, a stream of five parts, a reply.
const streak = 7

// large is the text of an event that goes out in deltas, and bulk that of a chunk in bulk.
const (
	large = 3000
	bulk  = 128 << 10
)

// remembered is how many numbers may be under way, far more than an agent misses while it is away.
const remembered = 1 << 12

// What verify counts apart.
const (
	event verify.Kind = "space.event"
	plain verify.Kind = "plain"
)

// round has the types in which frames arrive, by their place in a round.
var round = [streak]verify.Kind{"message", "message", "message_chunk", "message_chunk", "message_chunk", "message_end", "reply"}

var kinds = []verify.Kind{"message", "message_chunk", "message_end", "reply", event, plain}

// take hands out the next number. The caller holds the talker's mu.
func (o *outgoing) take() {
	n := o.line.Made() + 1
	s := verify.Sent{Kind: event}
	if o.to != "" {
		s.Kind = round[(n-1)%streak]
	}
	if o.to != "" && inStream(n) {
		s.Stream, s.Ends = streamOf(n), s.Kind == "message_end"
	}
	o.line.Take(s)
}

// frame returns the frame of a number; sent again it is the same.
func (o *outgoing) frame(n uint64) string {
	if o.to == "" {
		text := strconv.FormatUint(n, 10)
		if n%5 == 0 {
			text = strings.Repeat("x", large)
		}
		return fmt.Sprintf(`{"type":"space.publish","space":%s,"n":%d,"data":{"text":"%s","timestamp":%d}}`, Quote(o.talk.opts.Name), n, text, n)
	}
	head := fmt.Sprintf(`"to":%s,"n":%d`, Quote(o.to), n)
	stream := streamOf(n)
	switch (n - 1) % streak {
	case 0:
		if d := o.talk.opts.Deadline; d > 0 {
			head += fmt.Sprintf(`,"deadline_ms":%d`, d.Milliseconds())
		}
		return fmt.Sprintf(`{"type":"send",%s,"payload":%d}`, head, n)
	case 1:
		return fmt.Sprintf(`{"type":"send",%s,"stream_id":"s-%d","stream":true,"payload":%d}`, head, stream, n)
	case 2, 3, 4:
		text := strconv.FormatUint(n, 10)
		if o.bulky <= n && n < o.slim {
			text = strings.Repeat("x", bulk)
		}
		return fmt.Sprintf(`{"type":"send_chunk",%s,"stream_id":"s-%d","chunk":"%s"}`, head, stream, text)
	case 5:
		return fmt.Sprintf(`{"type":"send_end",%s,"stream_id":"s-%d"}`, head, stream)
	}
	return fmt.Sprintf(`{"type":"reply",%s,"payload":%d}`, head, n)
}

// push sends what is new, and again what is not known to be stored after a loss.
func (k *talker) push(conn *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, o := range k.out {
		if !k.talk.stopped.Load() && now.Sub(o.created) >= k.talk.opts.Beat && o.line.Made() < o.line.Settled()+window {
			o.take()
			o.created = now
		}
		for now.After(o.pause) {
			if o.next = o.line.Pending(o.next); o.next > o.line.Made() {
				break
			}
			if conn.Try(o.frame(o.next)) != nil {
				return
			}
			o.next++
		}
	}
	if !k.talk.stopped.Load() && now.Sub(k.plainly) >= k.talk.opts.Beat {
		k.plainly = now
		n := k.plain.Take(verify.Sent{Kind: plain})
		k.plain.Set(n, verify.Unknown)
		_ = conn.Try(fmt.Sprintf(`{"type":"send","to":%s,"payload":{"plain":%d}}`, Quote(k.out[0].to), n)) // never again
	}
}

// inStream reports whether a number is a part of a stream.
func inStream(n uint64) bool { return (n-1)%streak > 0 && (n-1)%streak < streak-1 }

// streamOf returns what tells the stream of a number's round from others.
func streamOf(n uint64) uint64 { return n - (n-1)%streak }

// parted returns the stream whose parts a number is, or is one of: an event in deltas is one by itself; 0 for none.
func (o *outgoing) parted(n uint64) uint64 {
	switch {
	case o.to == "":
		return n
	case n > 0 && inStream(n):
		return streamOf(n)
	}
	return 0
}

// refused goes back to the first frame that is not stored, a little later. What
// was refused permanently is not sent again, nor the rest of its stream. A stream whose
// part was refused may be aborted, or not: then it continues.
func (k *talker) refused(f Frame) {
	code, n := f.Text("code"), f.Uint("n")
	k.back.seen.Codes[code]++
	if f.Has("from") {
		k.aborted(f)
		return
	}
	o := k.lane(f.Text("to"))
	if o == nil {
		return
	}
	o.refusal = f
	stream := o.parted(n)
	switch {
	case code == "UNAVAILABLE":
		if stream > 0 {
			o.line.Abort(stream)
		}
		// From at once to when it was told to: agents differ in how patient they are.
		wait := 50 + rand.Int64N(1+int64(f.Uint("retry_after_ms")))
		o.next, o.pause = o.line.Settled()+1, time.Now().Add(time.Duration(wait)*time.Millisecond)
	case code == "STREAM_ABORTED" && stream > 0, code == "STREAM_NOT_FOUND" && o.line.Aborted(stream):
		o.line.Abort(stream)
		o.line.Set(n, verify.Unknown)
	default:
		k.fault("got %s", f)
	}
}

// aborted takes the end of a stream that its sender could not go on with.
func (k *talker) aborted(f Frame) {
	in := k.in[f.Text("from")]
	stream, err := strconv.ParseUint(strings.TrimPrefix(f.Text("stream_id"), "s-"), 10, 64)
	if in == nil || err != nil || f.Text("code") != "STREAM_ABORTED" {
		k.fault("got %s", f)
		return
	}
	in.track.Aborted(stream, f.Raw("redelivered") == "true")
}

// lane returns what goes to an addressee, nil where nothing does.
func (k *talker) lane(to string) *outgoing {
	for _, o := range k.out {
		if o.to == to {
			return o
		}
	}
	k.fault("has no lane to %q", to)
	return nil
}
