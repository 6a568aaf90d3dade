package simlog

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/agora-relay/agora/internal/simnet"
)

// copies returns all that a kind's streams keep.
func (l *Log) copies(kind string) map[string][]stored {
	all := map[string][]stored{}
	srv := l.server()
	info, err := srv.Jsz(&server.JSzOptions{Streams: true})
	if err != nil {
		return all // it is going down
	}
	for _, account := range info.AccountDetails {
		for _, s := range account.Streams {
			if kindOfStream(s.Name) == kind {
				all[s.Name] = copyOf(srv, s.Name)
			}
		}
	}
	return all
}

// copyOf returns all that a stream keeps.
func copyOf(srv *server.Server, stream string) []stored {
	c := &copier{up: simnet.NewInlet(), done: make(chan struct{})}
	createClient(srv, c)
	defer c.up.Close()
	ask := fmt.Sprintf(`{"seq":1,"next_by_subj":">","batch":%d,"max_bytes":%d}`, 1<<30, storage)
	_, err := fmt.Fprintf(c.up, "CONNECT {\"headers\":true,\"no_responders\":true,\"verbose\":false}\r\nSUB copy 1\r\nPUB %s%s copy %d\r\n%s\r\n", directPrefix, stream, len(ask), ask)
	if err == nil {
		<-c.done
	}
	return c.has
}

// copier is the server's end of a connection without faults, on which one question is asked.
type copier struct {
	up   *simnet.Inlet
	down []byte // written, and not a whole frame yet; the one who writes has it alone
	has  []stored

	done chan struct{} // closed once all has come, or nothing more does
	once sync.Once
}

// Read reads the question.
func (c *copier) Read(p []byte) (int, error) { return c.up.Read(p) }

// Write takes what the server says.
func (c *copier) Write(p []byte) (int, error) {
	c.down = append(c.down, p...)
	rest := c.down
	for f, n := split(rest); n > 0; f, n = split(rest) {
		rest = rest[n:]
		switch {
		case f.op != "HMSG":
		case f.status() != "":
			c.once.Do(func() { close(c.done) })
		default:
			c.take(&f)
		}
	}
	c.down = append(c.down[:0], rest...)
	return len(p), nil
}

// take takes a record.
func (c *copier) take(f *frame) {
	seq, _ := strconv.ParseUint(f.value("Nats-Sequence"), 10, 64)
	at, _ := time.Parse(time.RFC3339Nano, f.value("Nats-Time-Stamp"))
	end := bytes.LastIndex(f.header, []byte("\r\nNats-Num-Pending:"))
	if end > 0 {
		c.has = append(c.has, stored{f.value("Nats-Subject"), seq, at, bytes.Clone(f.header[:end]), bytes.Clone(f.body)})
	}
}

// Close ends the connection.
func (c *copier) Close() error {
	c.up.Leave()
	c.once.Do(func() { close(c.done) })
	return nil
}

// SetReadDeadline sets the deadline of reading.
func (c *copier) SetReadDeadline(t time.Time) error {
	c.up.SetReadDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: what is written is taken at once.
func (c *copier) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reading.
func (c *copier) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// LocalAddr returns an address that is nowhere.
func (*copier) LocalAddr() net.Addr { return nowhere{} }

// RemoteAddr returns an address that is nowhere.
func (*copier) RemoteAddr() net.Addr { return nowhere{} }
