package ws

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// FuzzHandshake reads the query of a handshake as strangers may write it: what is not refused names one token and one agent, as net/url reads them,
// and what a hello says of itself is in bounds.
func FuzzHandshake(f *testing.F) {
	for _, q := range []string{
		"", "agent_id=a&token=t", "agent_id=a&agent_id=b", "agent_id=%61&last_seq=9007199254740992", "last_seq=-1&agent_id=a", "agent_id=a&receipts=stored,read", "agent_id=", "agent_id=agora",
		"token=%zz", "agent_id=a;token=b", "agent_id=a%00", "agent%5Fid=a", "agent_id=a&resume_token=%ff", "&&=&agent_id", "agent_id=a#b",
	} {
		f.Add(q, "Bearer x")
	}
	f.Fuzz(func(t *testing.T, query, authorization string) {
		r := &http.Request{Method: "GET", URL: &url.URL{Path: "/ws", RawQuery: query}, Header: http.Header{"Authorization": {authorization}}}
		if e := ambiguous(r); e != nil {
			if e.Code != agora.InvalidRequest {
				t.Fatalf("refused with %v", e)
			}
			return
		}
		q := r.URL.Query()
		if got := token(r); !strings.EqualFold(strings.SplitN(authorization, " ", 2)[0], "bearer") && got != q.Get("token") {
			t.Fatalf("the token is %q", got)
		}
		h := greeting(q)
		if h == nil || h.err != nil {
			if e := h; e != nil && agora.AsError(e.err).Code != agora.InvalidRequest {
				t.Fatalf("a hello is refused with %v", e.err)
			}
			return
		}
		if id, err := agora.ParseOwnID(string(h.Card.ID)); err != nil || id != h.Card.ID || len(q["agent_id"]) != 1 {
			t.Fatalf("%q binds %q, %v", query, h.Card.ID, err)
		}
		if h.LastSeq >= 1<<53 {
			t.Fatalf("%q has seen %d", query, h.LastSeq)
		}
	})
}
