// Package jslog asks the log, as JetStream keeps it: where an address lives, what is stored there, by whose word, and
// what time it is by its servers. It reads and publishes, and moves fences; it keeps nothing but the time.
package jslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
)

// ErrNone means that the log has no such message.
var ErrNone = errors.New("no such message in the log")

// ErrSilent means that the log did not answer in time.
var ErrSilent = errors.New("the log did not answer in time")

const (
	retryAfter = time.Second           // told to agents with UNAVAILABLE
	LagPause   = 10 * time.Millisecond // before a replica that lags is asked again
	ReadTime   = 2 * time.Second       // for one answer of the log
	ReadBatch  = 256                   // messages in one read
	readBytes  = 1 << 20               // about as much in one read
	LastBatch  = 128                   // subjects in one read of last messages, for which the server takes nothing else that the edge sends
)

// Client asks JetStream. Its methods may be called at the same time.
type Client struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	within func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	cfg    Config
}

// Config sets up a client.
type Config struct {
	Read       time.Duration       // for one answer of the log
	Tail       time.Duration       // for reading a few records one by one
	Retry      time.Duration       // for one answer to a fence
	MaxAge     time.Duration       // of a record
	MaxRecords int64               // per mailbox or space
	Clock      *Clock              // set by what the servers say
	Fenced     func()              // told of each fence that was moved
	Absent     func(stream string) // told that nobody answers for a stream; must not block
}

// New returns a client on a connection. within returns a context for one question: it is over after a time, and when
// the connection is lost.
func New(nc *nats.Conn, js jetstream.JetStream, within func(context.Context, time.Duration) (context.Context, context.CancelFunc), cfg Config) *Client {
	return &Client{nc: nc, js: js, within: within, cfg: cfg}
}

// api asks JetStream something.
func (c *Client) api(ctx context.Context, what string, req map[string]any, answer any) (err error) {
	ctx, cancel := c.within(ctx, c.cfg.Read)
	defer cancel()
	var body []byte
	if req != nil {
		if body, err = json.Marshal(req); err != nil {
			return err
		}
	}
	resp, err := c.nc.RequestWithContext(ctx, "$JS.API."+what, body)
	if err != nil {
		return fmt.Errorf("asking %s: %w", what, err)
	}
	if err := json.Unmarshal(resp.Data, answer); err != nil {
		return fmt.Errorf("answer of %s: %w", what, err)
	}
	return nil
}

// Unavailable returns err as an agent may see it.
func Unavailable(err error) *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log can't be reached now", RetryAfter: retryAfter, Cause: err}
}

func Full() *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log is full", RetryAfter: retryAfter}
}

func TooLarge(limit int) *agora.Error {
	return agora.Errorf(agora.MessageTooLarge, "the message does not fit the %d bytes that the log takes", limit)
}

// Codes of the server's that mean something to us.
const (
	CodeNoPeers        = 10005
	CodeNoAccount      = 10039 // JetStream is not enabled for the account
	CodeResources      = 10023
	CodeMemory         = 10028
	CodeStorage        = 10047
	CodeWrongLast      = 10071 // the fence is not where the record expects it
	CodeReplicas       = 10074
	CodeNoJetStream    = 10076
	CodeStoreFailed    = 10077 // a limit of the stream: it is full
	CodeStreamBytes    = 10122 // more than the account allows for one stream
	CodeDuplicateOnWay = 10158 // a record with the same id is being stored
	CodeWrongLastOnWay = 10164 // the fence is being moved, or the lane's last record is still counted as on its way
)
