package iat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/party"
)

func TestAgentsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		if r.URL.Query().Get("after") == "" {
			fmt.Fprint(w, `{"agents":[{"id":"a b","name":"A","registered_at":"2026-01-02T03:04:05Z","dialect":"aip","type":"toolbox","tools":[{"name":"t"}],"metadata":{"address":"x:1"}}],"next":"a b"}`)
			return
		}
		fmt.Fprint(w, `{"agents":[{"id":"c","name":"C","registered_at":"2026-01-02T03:04:05Z","dialect":"aip"}]}`)
	}))
	t.Cleanup(s.Close)
	all, err := client(t, quick(s.URL)).Agents(await.Context(t), AgentQuery{Dialect: "aip", Domain: "d"})
	if err != nil || len(all) != 2 || all[1].ID != "c" {
		t.Fatalf("Agents = %+v, %v", all, err)
	}
	a := all[0]
	if a.ID != "a b" || a.Type != "toolbox" || len(a.Tools) != 1 || string(a.Metadata) != `{"address":"x:1"}` || !a.RegisteredAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("the first one is %+v", a)
	}
	if len(asked) != 2 || asked[0] != "/agents?dialect=aip&domain=d" || asked[1] != "/agents?after=a+b&dialect=aip&domain=d" {
		t.Errorf("asked for %q", asked)
	}
}

func TestAgentsOfADomainAreFound(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{
		Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute}, Doors: []func(agoratest.Entry) (agoratest.Opened, error){party.REST().Open},
	})
	for id, domain := range map[string]string{"near": "here", "far": "there"} {
		req, err := http.NewRequestWithContext(await.Context(t), http.MethodPut, c.HTTP(0)+"/agents/"+url.PathEscape(id), strings.NewReader(`{"domain":"`+domain+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("PUT: %s", resp.Status)
		}
	}
	asks := client(t, at(c, 1, ""))
	await.True(t, "the agent here", func() bool {
		all, err := asks.Agents(await.Context(t), AgentQuery{Domain: "here"})
		return err == nil && len(all) == 1 && all[0].ID == "near" && all[0].DialectName() == agora.OwnDialect
	})
}
