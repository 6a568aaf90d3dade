package rest

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
)

const (
	maxName     = 256 // characters of an Idempotency-Key
	maxDeadline = 24 * time.Hour
)

// terms are what a request says beside its body, where another agent is to answer it.
type terms struct {
	to, as agora.AgentID
	name   string        // the Idempotency-Key; may be empty
	within time.Duration // 0 for as long as it takes
}

// termsOf reads them.
func termsOf(x *web.Exchange) (t terms, err error) {
	if t.to, err = agora.ParseAgentID(x.Request.PathValue("id")); err != nil {
		return t, err
	}
	query, who := x.Request.URL.Query(), x.Actor.Principal()
	t.name = x.Request.Header.Get("Idempotency-Key")
	if len([]rune(t.name)) > maxName || strings.ContainsFunc(t.name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return t, agora.Errorf(agora.InvalidRequest, "Idempotency-Key must have at most %d printable characters", maxName)
	}
	sole, is := who.Sole()
	switch {
	case query.Get("as") != "":
		if t.as, err = agora.ParseAgentID(query.Get("as")); err != nil {
			return t, err
		}
	case is:
		t.as = sole
	case t.name != "":
		t.as = agora.AgentID("ask-" + call.NewBox(who.Tenant, agora.AgentID(who.Name), t.name)[:20])
	default:
		t.as = agora.AgentID("ask-" + strings.ToLower(rand.Text()[:16]))
	}
	if text := query.Get("deadline_ms"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 1 || ms > maxDeadline.Milliseconds() {
			return t, agora.Errorf(agora.InvalidRequest, "deadline_ms must be a number of milliseconds, of a day at most")
		}
		t.within = time.Duration(ms) * time.Millisecond
	}
	return t, nil
}

// call says the terms to a carrier.
func (t *terms) call(x *web.Exchange) carrier.Call {
	return carrier.Call{Actor: x.Actor, As: t.as, To: agora.Agent{ID: t.to}, Name: t.name, Within: t.within}
}

// respond starts a call and answers with what comes back of it. A call with a name, which is made again elsewhere, ends
// when the edge drains.
func (t *terms) respond(x *web.Exchange, start func(context.Context) (carrier.Answer, error)) error {
	x.Last()
	answer := func(ctx context.Context) error {
		a, err := start(ctx)
		if err != nil {
			return err
		}
		defer a.Close()
		if x.WantsEvents() {
			return stream(ctx, x, a)
		}
		return gather(ctx, x, a)
	}
	if t.name == "" {
		return answer(x.Context())
	}
	return x.UntilDrained(errDrains, answer)
}

var errDrains = &agora.Error{Code: agora.Unavailable, Message: "the edge is shutting down: ask again", RetryAfter: time.Second}
