package presence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// shares are those of tenants and of principals: a half each.
func shares(b presence.CardBounds) func() presence.CardBounds {
	b.Tenant, b.Own = [2]int64{1, 2}, [2]int64{1, 2}
	return func() presence.CardBounds { return b }
}

// sized is a card of at least so many bytes.
func sized(id agora.AgentID, bytes int) agora.Agent {
	return agora.Agent{ID: id, Name: strings.Repeat("x", bytes)}
}

// wantLevel fails the test unless an error says that a level is full, to an agent as well.
func wantLevel(t *testing.T, what string, err error, level string, bytes bool) {
	t.Helper()
	full, is := errors.AsType[*presence.FullError](err)
	if !is || full.Level != level || full.Bytes != bytes {
		t.Errorf("%s = %v, want that the %s is full", what, err, level)
		return
	}
	if e := agora.AsError(err); e.Code != agora.RateLimited || e.RetryAfter <= 0 || !strings.Contains(e.Message, level) {
		t.Errorf("%s = %+v to an agent, want RATE_LIMITED with the level", what, e)
	}
}

func TestOnePrincipalOrTenantTakesNoMoreThanItsShareOfRegistrations(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		bounds := presence.CardBounds{Registrations: presence.CardBound{Whole: 16}}
		edges := []*presence.Store{srv.store(presence.Config{Cards: shares(bounds)}), srv.store(presence.Config{Cards: shares(bounds)})}
		register := func(tenant, principal string, n int) error {
			r := registration(sized(agora.AgentID(fmt.Sprintf("%s-%d", principal, n)), 1), principal)
			r.Tenant = tenant
			return second(edges[n%2].Registrations.Register(t.Context(), r, time.Hour))
		}
		fill := func(tenant, principal string) (n int, err error) {
			for ; n < 100; n++ {
				if err = register(tenant, principal, n); err != nil {
					return n, err
				}
			}
			return n, nil
		}
		n, err := fill("acme", "mall")
		if n != 4 { // half of the half
			t.Errorf("a principal has %d registrations", n)
		}
		wantLevel(t, "one more of a principal", err, "principal", false)
		ok(t, register("acme", "mall", 0)) // what stands is renewed
		for k := range 16 {
			if _, err = fill("acme", fmt.Sprint("other", k)); err != nil && strings.Contains(err.Error(), "tenant") {
				break
			}
		}
		wantLevel(t, "one more of a tenant", err, "tenant", false)
		for _, tenant := range []string{"b", "c"} {
			if n, _ := fill(tenant, "joe"); n == 0 {
				t.Errorf("tenant %s has no room", tenant)
			}
		}
		own := presence.CardBounds{Registrations: presence.CardBound{Principal: 1, Whole: 1000}}
		edges[0] = srv.store(presence.Config{Cards: shares(own)})
		edges[1] = edges[0]
		n, err = fill("d", "joe")
		if n != 1 {
			t.Errorf("a principal has %d registrations, want its own bound", n)
		}
		wantLevel(t, "one more than a principal's own bound", err, "principal", false)
		all := presence.CardBounds{Registrations: presence.CardBound{Whole: 1}}
		edges[0] = srv.store(presence.Config{Cards: func() presence.CardBounds {
			all.Tenant, all.Own = [2]int64{1, 1}, [2]int64{1, 1}
			return all
		}})
		_, err = fill("e", "joe")
		wantLevel(t, "one more than the whole", err, "cluster", false)
	})
}

func TestCardsOfSessionsAndRegistrationsCountTogether(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Cards: shares(presence.CardBounds{Bytes: presence.CardBound{Whole: 40_000}})})
		r := claimant("a", "e1")
		renewed(t, s, r.Holder)
		r.Card = sized("a", 6_000)
		c, _ := begun(t, s, r)
		wantLevel(t, "a registration", second(s.Registrations.Register(t.Context(), registration(sized("b", 6_000), "alice"), time.Hour)), "principal", true)
		other := claimant("c", "e1")
		other.Card = sized("c", 6_000)
		wantLevel(t, "a session", second(s.Sessions.Claim(t.Context(), other)), "principal", true)
		wantLevel(t, "a larger card", second(s.Directory.SetCard(t.Context(), c, "alice", sized("a", 12_000))), "principal", true)
		if got := must(s.Directory.Agent(t.Context(), tenant, "a"))(t); len(got.Name) != 6_000 {
			t.Errorf("a card of %d bytes, want that which stood", len(got.Name))
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "c"))(t); f.State != presence.Unknown {
			t.Errorf("found %+v, want nobody", f)
		}
		bare := claimant("d", "e1")
		bare.Card = agora.Agent{ID: "d", Name: "d"}
		_, _ = begun(t, s, bare) // who says nothing is let in
		_ = must(s.Directory.SetCard(t.Context(), c, "alice", sized("a", 1_000)))(t)
		registers(t, s, registration(sized("b", 6_000), "alice"), time.Hour, agora.Online)
		stranger := registration(sized("b", 6_000), "bob")
		is(t, second(s.Registrations.Register(t.Context(), stranger, time.Hour)), presence.ErrOwned)
		wantSums(t, s)
	})
}

// wantSums fails the test unless the account of cards is what the records of all agents that it has had say.
func wantSums(t *testing.T, s *presence.Store) {
	t.Helper()
	got, err := presence.CardSums(t.Context(), s)
	ok(t, err)
	want := map[string]string{}
	entries, err := presence.CardEntries(t.Context(), s)
	ok(t, err)
	for field, entry := range entries {
		tenant, principal := "", ""
		parts := strings.Fields(field)
		tenant, _, _ = strings.Cut(parts[1], ".")
		principal = parts[2]
		words := strings.Fields(entry)
		for _, level := range []string{"p " + tenant + " " + principal, "t " + tenant, "all"} {
			for k, kind := range []string{" n", " b"} {
				had, _ := strconv.Atoi(want[level+kind])
				more, _ := strconv.Atoi(words[k+1])
				if had+more > 0 {
					want[level+kind] = strconv.Itoa(had + more)
				}
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("sums %v, want those of the entries %v: %v", got, entries, want)
	}
}

// wantEntries fails the test unless the account has exactly the entries that the records of agents bear out.
func wantEntries(t *testing.T, srv *server, s *presence.Store, what string, ids []agora.AgentID) {
	t.Helper()
	c := srv.client()
	defer c.Close()
	want := map[string]string{}
	for _, id := range ids {
		f, err := c.HGetAll(t.Context(), presence.RecordKey(tenant, id)).Result()
		ok(t, err)
		if _, is := f["reg_until"]; is {
			want[presence.CardField(true, tenant, id, f["reg_principal"])] = fmt.Sprint(1, len(f["reg_card"])+len(f["reg_detail"]))
		}
		if card := f["card"]; card != "" && !strings.HasPrefix(card[1:], `{"bare":true`) {
			want[presence.CardField(false, tenant, id, f["principal"])] = fmt.Sprint(0, len(card)+len(f["detail"]))
		}
	}
	entries, err := presence.CardEntries(t.Context(), s)
	ok(t, err)
	got := map[string]string{}
	for field, e := range entries {
		_, got[field], _ = strings.Cut(e, " ")
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%s: entries %v, want those of the records: %v", what, got, want)
	}
	wantSums(t, s)
}

// dweller is a random agent of a test.
type dweller struct {
	t    *testing.T
	s    *presence.Store
	id   agora.AgentID
	rng  *rand.Rand
	edge string

	claim *presence.Claim
	held  presence.Held
	until []presence.Registration // which edges know of
}

func (d *dweller) principal() string { return []string{"alice", "bob"}[d.rng.IntN(2)] }

func (d *dweller) card() agora.Agent {
	switch d.rng.IntN(4) {
	case 0:
		return agora.Agent{ID: d.id, Name: string(d.id)}
	case 1:
		return full(d.id)
	}
	return sized(d.id, d.rng.IntN(1000))
}

// step does something at random, and returns what.
func (d *dweller) step() string {
	ctx := d.t.Context()
	switch d.rng.IntN(7) {
	case 0, 1:
		r := registration(d.card(), d.principal())
		lasts := []time.Duration{time.Hour, time.Millisecond}[d.rng.IntN(2)]
		epoch, _, err := d.s.Registrations.Register(ctx, r, lasts)
		if r.Epoch = epoch; err == nil {
			d.until = []presence.Registration{r}
		}
		return "register"
	case 2:
		c, over, err := d.s.Registrations.Withdraw(ctx, tenant, d.principal(), d.id)
		if err == nil {
			d.until = nil
		}
		if err == nil && over {
			d.lapse(c)
		}
		return "withdraw"
	case 3:
		d.lapse(presence.Claim{})
		return "lapse"
	case 4:
		d.arrive()
		return "claim"
	case 5:
		if d.claim == nil {
			return "nothing"
		}
		card := d.card()
		if _, err := d.s.Directory.SetCard(ctx, *d.claim, d.held.Request.Principal, card); err == nil {
			d.held.Request.Card = card
		}
		return "card"
	}
	d.leave()
	return "end"
}

func (d *dweller) lapse(presence.Claim) {
	if c, err := d.s.Registrations.Lapsed(d.t.Context(), tenant, d.id); err == nil {
		_ = d.s.Registrations.Unregister(d.t.Context(), c)
		d.until = nil
	}
}

func (d *dweller) arrive() {
	r := claimant(d.id, d.edge)
	r.Principal, r.Card = d.principal(), d.card()
	r.Conn, r.Session, r.Token = fmt.Sprint(d.rng.Uint64()), fmt.Sprint(d.rng.Uint64()), fmt.Sprint(d.rng.Uint64())
	c, err := d.s.Sessions.Claim(d.t.Context(), r)
	if err != nil {
		return
	}
	for _, p := range c.Unsettled {
		_, _ = d.s.Sessions.Settle(d.t.Context(), c, p, true)
	}
	if _, err := d.s.Sessions.Begin(d.t.Context(), c); err == nil {
		d.claim, d.held = &c, presence.Held{Claim: c, Request: r}
	}
}

func (d *dweller) leave() {
	ctx := d.t.Context()
	if d.claim == nil {
		return
	}
	if err := d.s.Sessions.End(ctx, *d.claim); err != nil {
		return
	}
	d.claim = nil
	e, rec, err := d.s.Sessions.Ending(ctx, tenant, d.id)
	if err == nil {
		_ = d.s.Sessions.Finished(ctx, e, rec.Until.After(time.Now()))
	}
}

func TestTheAccountOfCardsIsWhatTheRecordsSay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Cards: shares(presence.CardBounds{Registrations: presence.CardBound{Whole: 16}, Bytes: presence.CardBound{Whole: 6_000}})})
		ids := []agora.AgentID{"a", "b", "c", "d", "e"}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		renewed(t, s, claimant("a", "e1").Holder)
		var all []*dweller
		for _, id := range ids {
			all = append(all, &dweller{t: t, s: s, id: id, rng: rng, edge: "e1"})
		}
		for n := range accountSteps {
			d := all[rng.IntN(len(all))]
			what := d.step()
			wantEntries(t, srv, s, fmt.Sprint(n, " ", what), ids)
			if n == accountSteps/2 {
				srv.empty()
				await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
				for _, d := range all {
					if d.claim != nil {
						_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{d.held}))(t)
					}
					for _, r := range d.until {
						_, _, err := s.Registrations.Register(t.Context(), r, time.Hour)
						if errors.Is(err, presence.ErrOwned) {
							continue // it was over, and a session of another principal has been there since
						}
						ok(t, err)
					}
				}
				ok(t, s.SetWhole(t.Context()))
				wantEntries(t, srv, s, "all is lost and told again", ids)
			}
		}
	})
}

// accountSteps is how many steps a random history of the account has.
const accountSteps = 150

func TestTheAccountOfCardsMissesNothingWhereManyChangeAnAgentAtOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		ids := []agora.AgentID{"a", "b"}
		h := claimant("a", "e1").Holder
		s := srv.store(presence.Config{})
		renewed(t, s, h)
		var work sync.WaitGroup
		for range 4 {
			seed := rand.Uint64()
			work.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 0))
				for range accountSteps / 3 {
					d := &dweller{t: t, s: s, id: ids[rng.IntN(2)], rng: rng, edge: "e1"}
					d.step()
					d.leave()
				}
			})
		}
		work.Wait()
		ok(t, presence.CompareCards(t.Context(), s))
		wantEntries(t, srv, s, "after all", ids)
	})
}

// before does something once, before a client runs a script.
type before struct {
	script string
	do     func()
	once   *sync.Once
}

func (before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if a := cmd.Args(); len(a) > 1 && a[1] == presence.Digest(h.script) {
			h.once.Do(h.do)
		}
		return next(ctx, cmd)
	}
}

func (before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAComparisonChangesNoCardThatWasCountedMeanwhile(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s, other := srv.store(presence.Config{}), srv.store(presence.Config{})
		registers(t, s, registration(full("a"), "alice"), time.Hour, agora.Online)
		_, over, err := s.Registrations.Withdraw(t.Context(), tenant, "alice", "a")
		if ok(t, err); !over {
			t.Fatal("a session goes on")
		}
		client := srv.client()
		client.(redis.UniversalClient).AddHook(before{"card_set", func() {
			registers(t, other, registration(full("a"), "alice"), time.Hour, agora.Online)
		}, new(sync.Once)})
		slow := presence.New(presence.Config{Client: client})
		defer slow.Close()
		c := must(s.Registrations.Lapsed(t.Context(), tenant, "a"))(t)
		ok(t, slow.Registrations.Unregister(t.Context(), c))
		wantEntries(t, srv, s, "registered while the end of another registration was counted", []agora.AgentID{"a"})
		if n := len(must(presence.CardEntries(t.Context(), s))(t)); n != 1 {
			t.Errorf("%d entries, want that of the registration", n)
		}
	})
}

func TestASweepPutsRightWhatTheAccountOfCardsHasTooMuch(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Cards: shares(presence.CardBounds{Registrations: presence.CardBound{Whole: 4}})})
		registers(t, s, registration(full("a"), "alice"), time.Hour, agora.Online)
		raw := srv.client()
		defer raw.Close()
		ok(t, raw.Del(t.Context(), presence.RecordKey(tenant, "a")).Err()) // as an edge leaves it that knows of no account
		wantLevel(t, "one more", second(s.Registrations.Register(t.Context(), registration(full("b"), "alice"), time.Hour)), "principal", false)
		for _, field := range must(raw.ZRange(t.Context(), presence.CardDue, 0, -1).Result())(t) {
			ok(t, raw.ZAdd(t.Context(), presence.CardDue, redis.Z{Member: field}).Err())
		}
		await.True(t, "the account is put right", func() bool {
			_, err := s.Sweep(t.Context(), presence.Holder{Edge: "e", Incarnation: "i"}, 64)
			ok(t, err)
			return len(must(presence.CardEntries(t.Context(), s))(t)) == 0
		})
		registers(t, s, registration(full("b"), "alice"), time.Hour, agora.Online)
	})
}
