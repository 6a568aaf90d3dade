package simcluster

import (
	"context"
	"net"

	"github.com/agora-relay/agora/internal/simlog"
	"github.com/agora-relay/agora/presence"
)

// backends are the log and presence of one history.
type backends struct {
	log      *simlog.Log
	presence *presence.Server
}

func startBackends(seed uint64) (*backends, error) {
	log, err := simlog.Start(seed)
	if err != nil {
		return nil, err
	}
	p, err := presence.EmbedInProcess()
	if err != nil {
		return nil, err
	}
	return &backends{log, p}, nil
}

func (b *backends) stop() error {
	b.presence.Close()
	return b.log.Stop()
}

func (b *backends) dialPresence(context.Context) (net.Conn, error) {
	return b.presence.Dial()
}
