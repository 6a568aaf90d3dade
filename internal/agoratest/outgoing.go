package agoratest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// outgoing is what a talker sends to one addressee.
type outgoing struct {
	talk    *Talk
	to      string // an agent; empty for the space
	made    uint64 // numbers handed out so far
	stored  uint64 // numbers known to be stored
	next    uint64 // number to send next
	pause   time.Time
	created time.Time       // when the last number was handed out
	refusal Frame           // the last error about it
	failed  map[uint64]bool // numbers that were refused for good
	broken  map[string]bool // streams of which a part was refused for the moment

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

// kinds are the types in which frames arrive, by their place in a round.
var kinds = [streak]string{"message", "message", "message_chunk", "message_chunk", "message_chunk", "message_end", "reply"}

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
	stream := n - (n-1)%streak
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

// skip passes over what will never be stored.
func (o *outgoing) skip() {
	for o.failed[o.stored+1] && o.stored < o.made {
		o.stored++
	}
}

// push sends what is new, and again what is not known to be stored after a loss.
func (k *talker) push(conn *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, o := range k.out {
		if !k.talk.stopped.Load() && now.Sub(o.created) >= k.talk.opts.Beat && o.made < o.stored+window {
			o.made++
			o.created = now
		}
		for now.After(o.pause) && o.next <= o.made {
			if o.failed[o.next] {
				o.next++
				continue
			}
			if conn.Try(o.frame(o.next)) != nil {
				return
			}
			o.next++
		}
	}
	if !k.talk.stopped.Load() && now.Sub(k.plainly) >= k.talk.opts.Beat {
		k.plainly = now
		k.plain++
		_ = conn.Try(fmt.Sprintf(`{"type":"send","to":%s,"payload":{"plain":%d}}`, Quote(k.out[0].to), k.plain)) // never again
	}
}

// inStream tells whether a number is a part of a stream.
func inStream(n uint64) bool { return (n-1)%streak > 0 && (n-1)%streak < streak-1 }

// streamOf returns the name of the stream that a number is a part of; else that of its round.
func streamOf(n uint64) string { return fmt.Sprintf("s-%d", n-(n-1)%streak) }

// refused goes back to the first frame that is not stored, a little later. What
// was refused for good is not sent again, nor the rest of its stream. A stream whose
// part was refused may be aborted, or not: then it goes on.
func (k *talker) refused(f Frame) {
	code, n := f.Text("code"), f.Uint("n")
	k.seen.Codes[code]++
	if f.Has("from") {
		k.aborted(f)
		return
	}
	o := k.lane(f.Text("to"))
	o.refusal = f
	switch {
	case code == "UNAVAILABLE":
		if n > 0 && inStream(n) {
			o.broken[streamOf(n)] = true
		}
		// From at once to when it was told to: agents differ in how patient they are.
		wait := 50 + rand.Int64N(1+int64(f.Uint("retry_after_ms")))
		o.next, o.pause = o.stored+1, time.Now().Add(time.Duration(wait)*time.Millisecond)
	case code == "STREAM_ABORTED" && n > 0 && (inStream(n) || o.to == ""), code == "STREAM_NOT_FOUND" && o.broken[streamOf(n)]:
		o.broken[streamOf(n)] = true
		o.failed[n] = true
		o.skip()
	default:
		k.fault("got %s", f)
	}
}

// aborted takes the end of a stream that its sender could not go on with.
func (k *talker) aborted(f Frame) {
	in, stream := k.from(f.Text("from")), f.Text("stream_id")
	over := in.aborted[stream] || in.last > 0 && streamOf(in.last) == stream && !inStream(in.last+1)
	if f.Text("code") != "STREAM_ABORTED" || over && f.Raw("redelivered") != "true" {
		k.fault("got %s after number %d", f, in.last)
	}
	in.aborted[stream] = true
}

// lane returns what goes to an addressee. The caller holds mu.
func (k *talker) lane(to string) *outgoing {
	for _, o := range k.out {
		if o.to == to {
			return o
		}
	}
	k.fault("has no lane to %q", to)
	return &outgoing{}
}
