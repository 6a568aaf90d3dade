package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/internal/loadgen/soak"
)

// load is what agents do while a drill is played: most send numbered messages, streams, questions and events; some
// crash.
type load struct {
	run     *soak.Run
	doomed  []*client.Client
	network *faultnet.Link // of the doomed
}

// crashes is how many agents crash in a drill.
const crashes = 6

// startLoad connects the agents, and begins to send. The caller owes a call of close, unless there is an error.
func startLoad(ctx context.Context, url string, rate float64, log *slog.Logger) (*load, error) {
	run, err := soak.Start(ctx, soak.Config{
		Edges: []string{url}, Senders: 12, Receivers: 12, Spaces: 3, Rate: rate, Log: log,
		Patience: 5 * time.Minute, // a drill may last as long: nothing is to be given up meanwhile
	})
	if err != nil {
		return nil, err
	}
	l := &load{run: run, network: faultnet.New()}
	for i := range crashes {
		c, err := client.Dial(ctx, client.Config{
			URLs: []string{url}, Agent: fmt.Sprintf("%s-doomed%d", run.Name(), i), Dial: l.network.DialContext, Log: log,
		})
		if err == nil {
			l.doomed = append(l.doomed, c)
			_, err = c.Join(ctx, run.Name()+"-doomed")
		}
		if err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// crash ends agents without a goodbye: half of the doomed lose their connections now; the others can't come back once
// they lose theirs.
func (l *load) crash() {
	l.network.Refuse(true)
	for range crashes / 2 {
		l.network.CutOne()
	}
}

// finish stops sending and returns what became of what was sent, and why it may have been given up: nil, or more than
// within was needed. The agents of the run stay connected; the doomed are gone.
func (l *load) finish(ctx context.Context, within time.Duration) (soak.Report, error) {
	l.network.Cut()
	bounded := func(f func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return f(ctx)
	}
	err := errors.Join(bounded(l.run.Stop), bounded(l.run.Settle))
	return l.run.Progress(), err
}

// close ends all agents of the load.
func (l *load) close() soak.Report {
	l.network.Close()
	for _, c := range l.doomed {
		_ = c.Close() // it can't say goodbye: its network is gone
	}
	return l.run.Close()
}
