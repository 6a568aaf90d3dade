package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// kill ends edge k as if its process had died: nothing is handed over, presence is told nothing, and its lease runs out
// by itself. Its admin port stays, so that it can be asked to start the edge again.
func (c *cluster) kill(k int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.has(k); err != nil {
		return err
	}
	e := c.edges[k]
	if e == nil {
		return agora.Errorf(agora.InvalidRequest, "edge-%d does not run", k)
	}
	mux := adminMux(func() error { return errors.New("the edge was killed") })
	mux.Handle("/v1/dev/", gate{tokenFile: c.run.Admin.TokenFile}.guard(c.control()))
	e.ports.admin.serve(mux)
	e.die()
	c.edges[k], c.left[k] = nil, e.ports.admin
	e.log.Info("edge killed")
	return nil
}

// start starts edge k again, where it was.
func (c *cluster) start(ctx context.Context, k int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.has(k); err != nil {
		return err
	}
	if c.edges[k] != nil {
		return agora.Errorf(agora.InvalidRequest, "edge-%d runs", k)
	}
	e := newEdge(fmt.Sprintf("edge-%d", k), c.log, c.fail)
	e.ports.admin = c.left[k]
	if err := e.ports.open(c.places[k], &c.run.Settings, &e.proxies, e.log, e.fail); err != nil {
		e.ports.close()
		return err
	}
	if err := c.startEdge(ctx, e, c.run); err != nil {
		e.end()
		e.backends.close(e.log)
		return err
	}
	c.edges[k], c.left[k] = e, nil
	e.log.Info("edge started again")
	return nil
}

// has reports an error where there is no edge k. mu is held.
func (c *cluster) has(k int) error {
	if k < 0 || k >= len(c.edges) {
		return agora.Errorf(agora.NotFound, "there is no edge %d: edges are 0 to %d", k, len(c.edges)-1)
	}
	return nil
}

// die ends the edge, but for its admin port, without a word to presence.
func (e *edgeServer) die() {
	e.dead.Store(true)
	_ = e.backends.presence.Close() // what its end would say there is left unsaid
	e.backends.presence = nil
	e.end()
	e.backends.close(e.log)
}

// control answers `agora dev kill` and `agora dev start`.
func (c *cluster) control() http.Handler {
	mux := http.NewServeMux()
	for verb, do := range c.verbs() {
		mux.HandleFunc("POST /v1/dev/"+verb, func(w http.ResponseWriter, r *http.Request) {
			operate(w, r, func(ctx context.Context, q operatorQuery) (any, error) {
				k, err := edgeNumber(q.id)
				if err == nil {
					err = do(ctx, k)
				}
				return map[string]any{"edge": fmt.Sprintf("edge-%d", k)}, err
			})
		})
	}
	return mux
}

// killing and starting are what edges of `agora dev` may be told.
const (
	killing  = "kill"
	starting = "start"
)

func (c *cluster) verbs() map[string]func(context.Context, int) error {
	return map[string]func(context.Context, int) error{
		killing:  func(_ context.Context, k int) error { return c.kill(k) },
		starting: c.start,
	}
}

// edgeNumber reads the number of an edge: 1, or edge-1.
func edgeNumber(text string) (int, error) {
	k, err := strconv.Atoi(strings.TrimPrefix(text, "edge-"))
	if err != nil {
		return 0, agora.Errorf(agora.InvalidRequest, "want the number of an edge, from 0, not %q", text)
	}
	return k, nil
}

// takeOrders does what is typed, until in or ctx ends. It is not waited for: nothing interrupts a read of a terminal.
func (c *cluster) takeOrders(ctx context.Context, in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() && ctx.Err() == nil {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		fmt.Fprintln(out, c.order(ctx, words)) // whom it is told may have gone
	}
}

// order does what a line says, and returns what came of it.
func (c *cluster) order(ctx context.Context, words []string) string {
	do := c.verbs()[words[0]]
	if do == nil || len(words) != 2 {
		return "say `kill N` or `start N`, of edge N; Ctrl-C ends the cluster"
	}
	k, err := edgeNumber(words[1])
	if err == nil {
		err = do(ctx, k)
	}
	if e, known := errors.AsType[*agora.Error](err); known {
		return e.Message
	}
	if err != nil {
		return err.Error()
	}
	if words[0] == killing {
		return fmt.Sprintf("edge-%d is killed", k)
	}
	return fmt.Sprintf("edge-%d runs again", k)
}

// typed has the cluster take orders from a terminal, if there is one.
func (c *cluster) typed(cmd *cobra.Command) {
	if !terminal.Is(cmd.InOrStdin()) {
		return
	}
	terminal.ReadInForegroundOnly()
	go c.takeOrders(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()) // bare, for nobody can wait for a read of stdin
}
