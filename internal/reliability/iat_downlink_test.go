package reliability

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// iatDownlink is the downlink of an agent, which is opened at another edge where its own is gone, until it is closed.
type iatDownlink struct {
	*iatEdges
	id    string
	home  int  // the edge at which it is opened first
	exact bool // it is opened again with the position of what came last
	take  func(iatEnvelope)
	runs  sync.WaitGroup
	stop  context.CancelFunc

	mu    sync.Mutex // guards the fields below
	opens int
	cut   context.CancelFunc // ends the connection
}

// downlink returns when the agent's downlink is open at edge home. take gets all that comes but for what the edge
// itself has to say.
func (e *iatEdges) downlink(id string, home int, exact bool, take func(iatEnvelope)) *iatDownlink {
	e.t.Helper()
	d := &iatDownlink{iatEdges: e, id: id, home: home, exact: exact, take: take}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.runs.Go(func() { d.run(ctx) })
	e.t.Cleanup(d.close)
	await.True(e.t, id+" has a downlink", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.opens > 0
	})
	return d
}

func (d *iatDownlink) close() {
	d.stop()
	d.runs.Wait()
}

// kick cuts the connection.
func (d *iatDownlink) kick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut != nil {
		d.cut()
	}
}

// run opens the downlink at one edge after the other.
func (d *iatDownlink) run(ctx context.Context) {
	var last, token string
	for k := d.home; ctx.Err() == nil; k++ {
		q := url.Values{"agent": {d.id}}
		if token != "" {
			q.Set("resume_token", token)
		}
		h := http.Header{}
		if d.exact && last != "" {
			h.Set("Last-Event-ID", last)
		}
		b, code := d.open(ctx, k, http.MethodGet, "/a2a/events?"+q.Encode(), "", h)
		switch code {
		case "":
			token = b.resp.Header.Get("Agora-Resume-Token")
			if last == "" {
				last = b.resp.Header.Get("Agora-Last-Seq")
			}
			d.read(b, &last)
			continue
		case agora.InvalidRequest:
			token = "" // it is of a session that is over
		case agora.Unavailable, agora.AgentExists:
		default:
			d.t.Errorf("the downlink of %s is refused with %s", d.id, code)
		}
		<-time.After(retryAfter)
	}
}

// read takes what comes until the connection ends, and moves last on.
func (d *iatDownlink) read(b *iatBody, last *string) {
	defer b.close()
	d.mu.Lock()
	d.opens++
	d.cut = b.cancel
	d.mu.Unlock()
	for v, ok := b.next(); ok && v.name != "reconnect"; v, ok = b.next() {
		var e iatEnvelope
		if err := json.Unmarshal([]byte(v.data), &e); err != nil {
			d.t.Errorf("%s got %q: %v", d.id, v.data, err)
		}
		switch {
		case v.id != "":
			d.take(e)
			*last = v.id
		case e.Payload.Error.Code != agora.Unavailable: // with which an edge ends what it can't serve any more
			d.t.Errorf("%s is told %q", d.id, v.data)
		}
	}
}
