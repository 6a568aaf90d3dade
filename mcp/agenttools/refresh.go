package agenttools

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
)

// Bounds of one reading of the directory.
const (
	maxAgents  = 512 // agents whose tools are kept: the first by id. Those of others are found by agora_find_tool alone
	maxCards   = 256 // cards of agents that are new or have registered again; others wait for the next refresh
	maxRereads = 16  // cards that are read again though the listing of their agents is as it was
	readers    = 8   // cards that are asked for at a time
)

// card is what was read of an agent.
type card struct {
	listing listing
	round   uint64 // of the refresh in which it was read
	tools   []tool
}

// listing is what the list of agents says of one. It changes when the agent registers again, but not when it updates
// its card: so cards are read again in turns.
type listing struct {
	id, name, endpoint string
	registered         time.Time
}

// refresh reads the directory and brings the server's tools in step with it. It blocks for RefreshTimeout at most. What
// could not be read stays as it was.
func (t *Catalog) refresh(ctx context.Context, s *mcp.Server) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.RefreshTimeout)
	defer cancel()
	t.refreshing.Lock()
	defer t.refreshing.Unlock()
	listed, err := t.list(ctx)
	if err != nil {
		return err
	}
	err = t.readCards(ctx, listed)
	all := t.collect(listed)
	t.mu.Lock()
	t.tools = all
	t.mu.Unlock()
	t.offer(s, all)
	return err
}

// list returns the agents whose tools are wanted, sorted by id.
func (t *Catalog) list(ctx context.Context) ([]listing, error) {
	all, err := t.agents.Agents(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]listing, 0, len(all))
	for _, a := range all {
		if t.matches(string(a.ID)) {
			listed = append(listed, listing{string(a.ID), a.Name, a.Endpoint, a.RegisteredAt})
		}
	}
	slices.SortFunc(listed, func(a, b listing) int { return strings.Compare(a.id, b.id) })
	return listed[:min(len(listed), maxAgents)], nil
}

// readCards reads the cards that are due, several at a time, and forgets those of agents that are gone. It returns an
// error that one of them has met; what was known of that agent stays, and is read again at the next refresh.
func (t *Catalog) readCards(ctx context.Context, listed []listing) error {
	t.round++
	due := t.due(listed)
	ids := make([]string, len(due))
	for i, l := range due {
		ids[i] = l.id
	}
	cards, errs := t.cards(ctx, ids)
	var failed error
	for i, l := range due {
		switch {
		case errs[i] == nil:
			t.known[l.id] = &card{l, t.round, toolsOf(cards[i])}
		case agora.AsError(errs[i]).Code == agora.AgentNotFound: // it went after it was listed
			delete(t.known, l.id)
		default:
			failed = errs[i]
		}
	}
	return failed
}

// cards reads the cards of agents, several at a time. It returns when all are read, or have failed as ctx has ended.
func (t *Catalog) cards(ctx context.Context, ids []string) ([]agora.Agent, []error) {
	cards, errs := make([]agora.Agent, len(ids)), make([]error, len(ids))
	turns := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i, id := range ids {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			cards[i], errs[i] = t.cardOf(ctx, id)
		})
	}
	wg.Wait()
	return cards, errs
}

// due returns the agents whose cards are to be read: new ones and those that have registered again, and of the others
// those whose cards were read longest ago. It forgets agents that are not listed.
func (t *Catalog) due(listed []listing) []listing {
	here := make(map[string]bool, len(listed))
	var changed, rest []listing
	for _, l := range listed {
		here[l.id] = true
		if c := t.known[l.id]; c == nil || c.listing != l {
			changed = append(changed, l)
		} else {
			rest = append(rest, l)
		}
	}
	for id := range t.known {
		if !here[id] {
			delete(t.known, id)
		}
	}
	slices.SortStableFunc(rest, func(a, b listing) int { return cmp.Compare(t.known[a.id].round, t.known[b.id].round) })
	return slices.Concat(changed[:min(len(changed), maxCards)], rest[:min(len(rest), maxRereads)])
}

// collect returns the known tools of the listed agents, sorted by name. Tools that share a name by the chance of their
// hashes are left out, all of them: none may be called in place of another.
func (t *Catalog) collect(listed []listing) []tool {
	var all []tool
	times := make(map[string]int)
	for _, l := range listed {
		if c := t.known[l.id]; c != nil {
			all = append(all, c.tools...)
		}
	}
	for _, x := range all {
		times[x.mcpName]++
	}
	all = slices.DeleteFunc(all, func(x tool) bool { return times[x.mcpName] > 1 })
	slices.SortFunc(all, func(a, b tool) int { return strings.Compare(a.mcpName, b.mcpName) })
	return all
}
