package broker

import (
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/framesize"
)

// frameBound is how large the frame may be in which a message comes to its receiver.
type frameBound struct {
	most  atomic.Int64 // bytes; 0 for any
	small atomic.Int64 // bytes of a message that need not be measured
}

// BoundFrames has nothing be stored from now on that agents say and that would come to its receiver in a frame of more than most bytes, whatever door brought it: lanes and Publish
// refuse it with MESSAGE_TOO_LARGE. Before the first call everything is stored that the log takes.
func (b *Broker) BoundFrames(most int) {
	b.frames.small.Store(int64(framesize.Small(most)))
	b.frames.most.Store(int64(most))
}

// check returns MESSAGE_TOO_LARGE for what would come to its receiver in a larger frame than one may be. What the cluster itself says is none of it.
func (f *frameBound) check(m *agora.Message) *agora.Error {
	if int64(len(m.Body)+len(m.Meta.Head)) <= f.small.Load() {
		return nil
	}
	most := f.most.Load()
	if most == 0 || m.Kind > agora.Event || m.Part >= agora.Cancel {
		return nil
	}
	if size := framesize.Of(m) + len(m.Meta.Head); int64(size) > most {
		return agora.Errorf(agora.MessageTooLarge, "it would come to its receiver as a frame of up to %d bytes, which is larger than %d", size, most)
	}
	return nil
}
