package simcluster

import (
	"context"
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/agora-relay/agora/internal/simnet"
	"github.com/agora-relay/agora/presence"
)

// The server's clock is the process's: in a bubble, its goroutine would be one of those that wait.
func init() { ats.Register() }

// backends are the log and presence of one history.
type backends struct {
	log      *server.Server
	presence *presence.Server
}

func startBackends(t *testing.T) (*backends, error) {
	log, err := server.NewServer(&server.Options{
		ServerName: "log", DontListen: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20,
	})
	if err != nil {
		return nil, err
	}
	log.Start()
	p, err := presence.EmbedUnlistened()
	if err != nil {
		return nil, err
	}
	return &backends{log, p}, nil
}

func (b *backends) stop() {
	b.presence.Close()
	b.log.Shutdown()
	b.log.WaitForShutdown()
}

func (b *backends) dialLog(context.Context) (net.Conn, error) { return buffered(b.log.InProcessConn()) }

func (b *backends) dialPresence(context.Context) (net.Conn, error) {
	return buffered(b.presence.Dial())
}

func buffered(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return simnet.Buffer(c), nil
}
