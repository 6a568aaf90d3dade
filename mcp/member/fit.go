package member

import (
	"context"
	"reflect"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// Bytes of a card: how many edges take unless they are told otherwise, less what stands in it beside the tools; and how
// few are tried.
const (
	maxCard = 248 << 10
	minCard = 1 << 10
)

// fitting calls tell with a card, and again with a smaller one where an edge says that it is too large.
func (m *Member) fitting(card client.Card, tell func(client.Card) error) error {
	for ; ; m.limit /= 2 {
		fit := m.fit(card, m.limit)
		err := tell(fit)
		if err == nil {
			m.toldMu.Lock()
			m.told = fit
			m.toldMu.Unlock()
		}
		if err == nil || m.limit <= minCard || !tooLarge(err) {
			return err
		}
	}
}

// tooLarge reports whether an edge has refused a card for its size.
func tooLarge(err error) bool {
	e := agora.AsError(err)
	return e.Code == agora.MessageTooLarge || e.Code == agora.InvalidRequest && strings.Contains(e.Message, "larger than")
}

// fit returns a card that is no larger than a limit: the largest schemas are left out, then descriptions, then the last
// tools.
func (m *Member) fit(card client.Card, limit int) client.Card {
	card.Tools = append([]agora.Skill(nil), card.Tools...)
	for size(card) > limit {
		if k := largest(card.Tools, func(s agora.Skill) int { return len(s.Schema) }); k >= 0 {
			m.tellOnce("its schema", card.Tools[k].Name, agora.Errorf(agora.MessageTooLarge, "all of them are too large"))
			card.Tools[k].Schema = nil
		} else if k := largest(card.Tools, func(s agora.Skill) int { return len(s.Description) }); k >= 0 {
			card.Tools[k].Description = ""
		} else if n := len(card.Tools); n > 0 {
			m.tellOnce("the tool", card.Tools[n-1].Name, agora.Errorf(agora.MessageTooLarge, "all of them are too large"))
			card.Tools = card.Tools[:n-1]
		} else {
			card.Description, card.Name = "", ""
			break
		}
	}
	return card
}

func size(card client.Card) int {
	a := agora.Agent{Name: card.Name, Type: card.Type, Description: card.Description, Tools: card.Tools}
	return a.Size()
}

// largest returns the index of the tool of which something is largest; -1 where none has it.
func largest(tools []agora.Skill, of func(agora.Skill) int) int {
	at, most := -1, 0
	for k, s := range tools {
		if n := of(s); n > most {
			at, most = k, n
		}
	}
	return at
}

// refresh reads the tools of a session again, and tells the cluster where they have changed. Changes that follow each
// other closely are read once.
func (m *Member) refresh(ctx context.Context, s *session) error {
	if !s.settle() {
		return s.ended()
	}
	card, err := m.card(ctx, s)
	if err != nil || reflect.DeepEqual(m.fit(card, m.limit), m.told) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StartTimeout)
	defer cancel()
	return m.fitting(card, func(card client.Card) error { return m.client.UpdateCard(ctx, card) })
}
