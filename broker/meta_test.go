package broker

import (
	"reflect"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func TestMetaBeyondItsBoundsIsRefused(t *testing.T) {
	head := agora.Meta{Dialect: "iat", Head: make([]byte, agora.MaxHead+1)}
	call := agora.Meta{Call: strings.Repeat("c", agora.MaxCall+1)}
	request := agora.Meta{Request: strings.Repeat("r", agora.MaxRequest+1)}
	b := testBroker(t, testServer(t, 1), nil)
	cfg := lane("s", 1, false)
	cfg.To = bob
	l := b.Lane(cfg)
	for _, q := range []struct {
		code agora.Code
		meta agora.Meta
	}{{agora.MessageTooLarge, head}, {agora.InvalidRequest, call}, {agora.InvalidRequest, request}} {
		msg := agora.Message{To: bob, Body: []byte("{}"), Meta: q.meta}
		wantCode(t, put(t, l, msg), q.code)
		if _, err := b.Publish(t.Context(), "k", msg); agora.AsError(err).Code != q.code {
			t.Errorf("Publish = %v, want %s", err, q.code)
		}
	}
	msg := agora.Message{To: bob, Meta: agora.Meta{Request: "r-1", Call: "box", Dialect: "iat", Head: []byte("head")}}
	if r := put(t, l, msg); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := listen(t, b, bob, From{}).quiet(t); len(got) != 1 || !reflect.DeepEqual(got[0].Meta, msg.Meta) {
		t.Fatalf("got %+v", got)
	}
}
