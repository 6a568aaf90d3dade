package presence

import (
	"bytes"
	"context"
	"io"
	"iter"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Missing returns those of claims that presence does not have as h's any more: the server has lost them, or others have
// claimed since. One pipeline for every few hundred. Every claim of an edge is asked for once in a lease, so it leaves
// next to no garbage: answers are compared as they come, and only where one is not what it should be, or none came, is
// it asked for again and read.
func (s Sessions) Missing(ctx context.Context, h Holder, claims iter.Seq[Claim]) (missing []Claim, err error) {
	r := s.reviews.Get().(*review)
	defer s.reviews.Put(r)
	r.of(h)
	for c := range claims {
		r.add(c)
		if len(r.claims) < batch {
			continue
		}
		if missing, err = s.review(ctx, r, missing); err != nil {
			return nil, err
		}
	}
	return s.review(ctx, r, missing)
}

// review asks for the claims of r, which is empty then, and adds those that are missing.
func (s Sessions) review(ctx context.Context, r *review, missing []Claim) ([]Claim, error) {
	doubtful := r.doubtful(ctx, s.rdb)
	r.empty()
	if len(doubtful) == 0 {
		return missing, nil
	}
	es := make([]entry, len(doubtful))
	for i, c := range doubtful {
		es[i].member = member(c.Tenant, c.Agent)
	}
	epochs, err := s.epochs(ctx, r.holder, es)
	if err != nil {
		return nil, err
	}
	for i, c := range doubtful {
		if epochs[i] != c.Epoch {
			missing = append(missing, c)
		}
	}
	return missing, nil
}

// review is a batch of claims that are asked for together; its room is used again.
type review struct {
	holder Holder
	begin  []byte // of the answer about each claim that is there: all but its epoch
	claims []Claim
	text   []byte // keys, and what should be answered
	asked  []question
	cmds   []redis.Cmder
}

// question asks for one claim. It takes the answer as it comes (RESP), and compares it with what it should be.
type question struct {
	key  wordOf
	args [5]any
	cmd  redis.RawWriteToCmd
	want []byte   // of the answer, what has not come yet
	not  bool     // another answer has come
	room [40]byte // to read into
}

// wordOf is a word of a command: bytes that are used again once it was sent.
type wordOf struct{ b []byte }

// MarshalBinary returns the word as it is to be sent.
func (w *wordOf) MarshalBinary() ([]byte, error) { return w.b, nil }

// String returns the word as a Redis Cluster's client asks for it, to find its slot.
func (w *wordOf) String() string { return string(w.b) }

// of has the claims be those of a holder.
func (r *review) of(h Holder) {
	r.holder = h
	r.begin = appendBulk(append(r.begin[:0], "*3\r\n"...), "1")
	r.begin = appendBulk(r.begin, agora.EncodeToken(h.Incarnation))
}

// empty makes room for the next claims. Nothing of these is kept.
func (r *review) empty() {
	clear(r.claims)
	clear(r.cmds)
	r.claims, r.cmds, r.text = r.claims[:0], r.cmds[:0], r.text[:0]
}

func appendBulk[T string | []byte](dst []byte, word T) []byte {
	dst = strconv.AppendInt(append(dst, '$'), int64(len(word)), 10)
	return append(append(append(dst, "\r\n"...), word...), "\r\n"...)
}

func (r *review) add(c Claim) { r.claims = append(r.claims, c) }

// doubtful asks for all claims, and returns those of which it was not answered that they are there.
func (r *review) doubtful(ctx context.Context, rdb Client) (doubtful []Claim) {
	if len(r.claims) == 0 {
		return nil
	}
	if len(r.asked) < len(r.claims) {
		r.asked = make([]question, max(len(r.claims), min(2*len(r.asked), batch)))
	}
	for i, c := range r.claims {
		q := &r.asked[i]
		r.put(q, c)
		overwrite(&q.cmd, redis.NewRawWriteToCmd(ctx, q, q.args[:]...))
		r.cmds = append(r.cmds, &q.cmd)
	}
	p := rdb.Pipeline()
	_ = p.BatchProcess(ctx, r.cmds...)
	_, _ = p.Exec(ctx) // after an error some have no answer
	for i, c := range r.claims {
		if !r.asked[i].answered() {
			doubtful = append(doubtful, c)
		}
	}
	return doubtful
}

// overwrite makes a command that is over a new one, of which it keeps nothing: not its slot in a Redis Cluster either.
func overwrite[T any](old, with *T) { *old = *with }

// put makes q the question for a claim. A life of an edge has an incarnation of its own, so the edge's name need not be
// asked for.
func (r *review) put(q *question, c Claim) {
	at := len(r.text)
	r.text = append(append(r.text, recordBegin...), agora.EncodeToken(c.Tenant)...)
	r.text = append(append(r.text, '.'), agora.EncodeToken(string(c.Agent))...)
	r.text = append(r.text, recordEnd...)
	q.key.b = r.text[at:]
	at = len(r.text)
	var epoch [20]byte
	r.text = appendBulk(append(r.text, r.begin...), strconv.AppendUint(epoch[:0], c.Epoch, 10))
	q.want, q.not = r.text[at:], false
	q.args = [5]any{"hmget", &q.key, "state", "inc", "epoch"}
}

// answered reports whether the answer has come, and was what it should be.
func (q *question) answered() bool { return !q.not && len(q.want) == 0 }

// Write takes a part of the answer.
func (q *question) Write(p []byte) (int, error) {
	rest, as := bytes.CutPrefix(q.want, p)
	if !as {
		q.not = true
	}
	q.want = rest
	return len(p), nil
}

// ReadFrom takes a part of the answer from where it comes. Without it [io.Copy] would make room for each.
func (q *question) ReadFrom(from io.Reader) (sum int64, err error) {
	for err == nil {
		var n int
		n, err = from.Read(q.room[:])
		q.Write(q.room[:n])
		sum += int64(n)
	}
	if err == io.EOF {
		err = nil
	}
	return sum, err
}
