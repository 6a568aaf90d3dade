package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

// hands hands a request off, and returns its frame.
func hands(t *testing.T, c *Client, conn *peerConn) (*Call, wire.Frame) {
	t.Helper()
	call, err := c.Handoff(await.Context(t), "you", Handoff{Path: "/greet/{name}", Params: map[string]string{"name": "<Ada>"}, Input: raw(`{"n": 1.0}`)})
	if err != nil {
		t.Fatal(err)
	}
	f := conn.expect("handoff")
	if f.ID == "" || f.To != "you" || f.Method != "POST" || f.Path != "/greet/{name}" || string(f.Params) != `{"name":"<Ada>"}` || string(f.Input) != `{"n": 1.0}` || f.DeadlineMS <= 0 {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	return call, f
}

func TestARequestIsHandedOffAndAnsweredInPieces(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	call, f := hands(t, c, conn)
	for i, body := range []string{`"a\n"`, `"iVA=","media":"image/png"`, `{"n": 2.0}`} {
		conn.raw(fmt.Sprintf(`{"type":"handoff.chunk","id":%q,"from":"you","index":%d,"body":%s}`, f.ID, i, body))
	}
	conn.raw(fmt.Sprintf(`{"type":"handoff.result","id":%q,"from":"you","code":200,"body":"iVA","media":"image/png"}`, f.ID))
	got := ""
	for a, err := range call.Chunks() {
		b, e := a.Bytes()
		if got += string(b) + "|"; err != nil || e != nil {
			t.Fatal(err, e)
		}
	}
	if want := "a\n|\x89P|{\"n\": 2.0}|"; got != want {
		t.Fatalf("pieces are %q, want %q", got, want)
	}
	a, err := call.Result(await.Context(t))
	if err != nil || a.Status != 200 || string(a.Body) != `"iVA"` || a.Media != "image/png" || call.Agent() != "you" {
		t.Fatalf("Result = %+v, %v", a, err)
	}
	if b, err := a.Bytes(); err == nil {
		t.Errorf("bytes of no base64 are %q", b)
	}
	settled(t, c)
}

func TestAHandoffFailsAsItIsTold(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	for answer, want := range map[string]string{
		`{"type":"error","code":"AGENT_OFFLINE","message":"away","request_id":%q,"to":"you"}`:                                         "AGENT_OFFLINE: away",
		`{"type":"handoff.result","id":%q,"from":"you","code":404,"error":{"code":"NOT_FOUND","message":"no path","path":"/a/path"}}`: "NOT_FOUND: no path 404 /a/path",
	} {
		call, f := hands(t, c, conn)
		conn.raw(fmt.Sprintf(answer, f.ID))
		_, err := call.Result(await.Context(t))
		got := fmt.Sprint(err)
		if e, ok := errors.AsType[*AnswerError](err); ok {
			got += fmt.Sprintf(" %d %s", e.Status, e.Path)
		}
		if got != want {
			t.Errorf("Result = %q, want %q", got, want)
		}
	}
	for _, h := range []Handoff{{Path: "greet"}, {}, {Path: "/", Params: raw(`{`)}, {Path: "/", Input: func() {}}} {
		if _, err := c.Handoff(await.Context(t), "you", h); err == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%+v: %v, want INVALID_REQUEST", h, err)
		}
	}
	settled(t, c)
}

func TestAHandoffIsSentAgainInItsSessionAndGivenUpByItsContext(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithCancel(await.Context(t))
	call, err := c.Handoff(ctx, "you", Handoff{Method: "GET", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	f := conn.expect("handoff")
	conn.cut()
	conn = p.accept()
	conn.register(true)
	if again := conn.expect("handoff"); again.ID != f.ID {
		t.Fatalf("sent again as %s", again.Append(nil))
	}
	cancel()
	conn.givenUp(f)
	if _, err := call.Result(await.Context(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("Result = %v, want the context's error", err)
	}
	settled(t, c)
	call, _ = hands(t, c, conn)
	conn.cut()
	p.accept().register(false)
	if _, err := call.Result(await.Context(t)); !errors.Is(err, ErrUnknown) {
		t.Fatalf("Result in another session = %v, want ErrUnknown", err)
	}
}

func TestACardIsReturnedAsItWasWritten(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	got := async(func() ([]byte, error) { return c.Card(await.Context(t), "you") })
	f := conn.expect("card.get")
	conn.raw(fmt.Sprintf(`{"type":"card","id":%q,"from":"you","card":{"n": 1.0}}`, f.ID))
	if card := got(t); f.To != "you" || string(card) != `{"n": 1.0}` {
		t.Fatalf("the card of %s is %s", f.To, card)
	}
}

// finds answers one search of c by ids, and each request for a card as told; "" is an error.
func finds(conn *peerConn, cards ...string) {
	var all []string
	for i := range cards {
		all = append(all, fmt.Sprintf(`{"id":"a%d","name":"a","registered_at":""}`, i))
	}
	f := conn.expect("agents.find")
	conn.raw(fmt.Sprintf(`{"type":"agents.found","id":%q,"agents":[%s]}`, f.ID, strings.Join(all, ",")))
	for range cards {
		f = conn.expect("card.get")
		card := cards[slices.Index(all, fmt.Sprintf(`{"id":%q,"name":"a","registered_at":""}`, f.To))]
		if card == "" {
			conn.raw(fmt.Sprintf(`{"type":"error","code":"TIMEOUT","message":"no card","request_id":%q,"to":%q}`, f.ID, f.To))
		} else {
			conn.raw(fmt.Sprintf(`{"type":"card","id":%q,"from":%q,"card":%s}`, f.ID, f.To, card))
		}
	}
}

func TestWorkIsDelegatedToWhoFits(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	type choice = func([]Candidate, *Handoff) (string, error)
	last := func(all []Candidate, h *Handoff) (string, error) { return string(all[len(all)-1].ID), nil }
	two := []string{`{"skills":[{"name":"cook","path":"cook/{dish}","method":"PUT"},{"name":"bake"}]}`, `[]`, `{"skills":["sum up"]}`}
	for _, one := range []struct {
		q      Query
		choose choice
		h      Handoff
		cards  []string
		want   string // of the handoff
	}{
		{Query{Skill: "cook"}, nil, Handoff{}, two, "a0 PUT /cook/{dish}"},
		{Query{Skill: "cook"}, nil, Handoff{Method: "GET"}, two, "a0 GET /cook/{dish}"},
		{Query{Skill: "bake"}, nil, Handoff{}, two, "a0 POST /bake"},
		{Query{Skill: "fry/it"}, nil, Handoff{}, two, "a0 POST /fry%2Fit"},
		{Query{Goal: "dinner"}, nil, Handoff{}, two, "a0 PUT /cook/{dish}"},
		{Query{Goal: "dinner"}, nil, Handoff{Path: "/x"}, two, "a0 POST /x"},
		{Query{Goal: "a summary"}, last, Handoff{}, two, "a2 POST /sum%20up"},
		{Query{Goal: "dinner"}, last, Handoff{}, two[:2], "a1 POST /"},
		{Query{Skill: "cook"}, nil, Handoff{}, []string{"", two[0]}, "a1 PUT /cook/{dish}"},
		{Query{Skill: "cook"}, func(all []Candidate, h *Handoff) (string, error) {
			h.Path = "/chosen"
			return string(all[0].ID), nil
		}, Handoff{}, two[:1], "a0 POST /chosen"},
	} {
		got := async(func() (*Call, error) { return c.Delegate(await.Context(t), one.q, one.choose, one.h) })
		finds(conn, one.cards...)
		f := conn.expect("handoff")
		if asked := f.To + " " + f.Method + " " + f.Path; asked != one.want {
			t.Errorf("%+v: asked %s, want %s", one.q, asked, one.want)
		}
		call := got(t)
		conn.raw(fmt.Sprintf(`{"type":"handoff.result","id":%q,"from":%q,"code":200,"body":1}`, f.ID, f.To))
		if a, err := call.Result(await.Context(t)); string(a.Body) != "1" || err != nil || call.Agent() != f.To {
			t.Errorf("Result = %s, %v", a.Body, err)
		}
	}
	for _, one := range []struct {
		choose choice
		cards  []string
		want   string
	}{
		{nil, nil, "NOT_FOUND: no agent fits"}, {nil, []string{"", ""}, "TIMEOUT: no card"},
		{func([]Candidate, *Handoff) (string, error) { return "", errors.New("none is good enough") }, two, "none is good enough"},
	} {
		failed := errOf(func() error {
			_, err := c.Delegate(await.Context(t), Query{Skill: "cook"}, one.choose, Handoff{})
			return err
		})
		finds(conn, one.cards...)
		if err := failed(t); err == nil || err.Error() != one.want {
			t.Errorf("Delegate = %v, want %s", err, one.want)
		}
	}
	settled(t, c)
}
