package demux

import (
	"context"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/pause"
)

// tellPeer cancels a stream for its peer, again until that is stored, or another stream has begun under its name. It
// returns false where the Demux is closed before.
func (d *Demux) tellPeer(k key, first uint64) bool {
	s := d.session.Load()
	for delay := firstDelay; d.isGiven(k); delay = min(2*delay, lastDelay) {
		e := agora.AsError(cancelStream(s, k, first))
		switch {
		case e == nil || e.Code == agora.StreamNotFound:
			return true
		case e.Code != agora.Unavailable && e.Code != agora.RateLimited:
			d.cfg.Log.Debug("cancel was refused", "err", e)
			return true
		case !pause.For(d.ctx, delay):
			return false
		}
	}
	return true
}

// cancelTime bounds one try, which is finished though the Demux is closed: once the session drops what follows of the
// stream, no later holder would tell its peer.
const cancelTime = 5 * time.Second

// cancelStream says once that a stream is cancelled, and waits until that is stored.
func cancelStream(s *edge.Session, k key, first uint64) error {
	ctx, stop := context.WithTimeout(context.Background(), cancelTime)
	defer stop()
	told := make(chan edge.Notice, 1)
	id := "demux-" + strconv.FormatUint(first, 36)
	m := agora.Message{ID: id, Kind: agora.Request, Part: agora.Cancel, Stream: k.stream, To: agora.Address{Agent: k.peer}}
	err := s.Do(ctx, &edge.Command{Verb: edge.Send, Message: m, ID: id, Told: func(n edge.Notice) {
		select {
		case told <- n:
		default:
		}
	}})
	if err != nil {
		return err
	}
	select {
	case n := <-told:
		if n.Err != nil {
			return n.Err
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Demux) isGiven(k key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names.given.has(k)
}
