package edge

import "sync/atomic"

// waits counts the verbs that wait for something of the edge's own.
type waits struct{ n atomic.Int32 }

func (w *waits) begin()    { w.n.Add(1) }
func (w *waits) end()      { w.n.Add(-1) }
func (w *waits) any() bool { return w.n.Load() > 0 }
