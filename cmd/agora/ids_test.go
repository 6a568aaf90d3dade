package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	clientaip "github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire/aip"
)

// badIDs are no agent's. Those with true may not be addressed either.
var badIDs = map[string]bool{
	"Jose\u0301": true, "\u212b": true, " bob": true, "bob ": true, "bob\u3164": true, "bob\u00a0": true, "b\u200bob": true,
	"Agora": false, "AGORA": false, "аgora": false, "ａｇｏｒａ": false, "ag0ra": false, "agorá": false,
}

// Every door by which an agent becomes one, or another is named, with every id that is none.
func TestNoDoorTakesAnIdThatCouldBeTakenForAnother(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	web := strings.TrimSuffix(strings.Replace(d.public[0], "ws", "http", 1), "/ws")
	asks := func(method, path, body string) func(string) error {
		return func(id string) error {
			r, err := http.NewRequest(method, web+strings.ReplaceAll(path, "ID", url.PathEscape(id)), strings.NewReader(strings.ReplaceAll(body, "ID", id)))
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			if resp.StatusCode == http.StatusBadRequest && strings.Contains(string(b), "INVALID_REQUEST") {
				return agora.Errorf(agora.InvalidRequest, "%s", b)
			}
			return agora.Errorf(agora.Unavailable, "%d %s", resp.StatusCode, b)
		}
	}
	frame := func(bound, text string) func(string) error {
		return func(id string) error {
			c := connect(t, d.public[0]+bound)
			if bound != "" {
				c.hear("agent.registered")
			}
			c.say(strings.ReplaceAll(text, "ID", id))
			if _, b, err := c.ReadMessage(); err != nil || !strings.Contains(string(b), "INVALID_REQUEST") {
				return fmt.Errorf("%s, %w", b, err)
			}
			return agora.Errorf(agora.InvalidRequest, "refused")
		}
	}
	invalid := func(err error) error {
		if grpcstatus.Code(err) == codes.InvalidArgument {
			return agora.Errorf(agora.InvalidRequest, "%v", err)
		}
		return err
	}
	g, ctx := gatewayAt(t, d.grpc[0]), await.Context(t)
	becomes := map[string]func(id string) error{
		"/ws?agent_id=": func(id string) error {
			c := connect(t, d.public[0]+"?agent_id="+url.QueryEscape(id))
			if _, b, err := c.ReadMessage(); err != nil || !strings.Contains(string(b), "INVALID_REQUEST") {
				return fmt.Errorf("%s, %w", b, err)
			}
			return agora.Errorf(agora.InvalidRequest, "refused")
		},
		"register":           frame("", `{"type":"register","id":"ID"}`),
		"agent.register":     frame("", `{"type":"agent.register","id":"r-1","agent_id":"ID"}`),
		"PUT /agents/{id}":   asks(http.MethodPut, "/agents/ID", `{}`),
		"POST /register":     asks(http.MethodPost, "/register", `{"agent_name":"ID","peer_id":"12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN","addrs":["/ip4/192.0.2.1/tcp/1"]}`),
		"POST /a2a":          asks(http.MethodPost, "/a2a", `{"header":{"msg_id":"m","type":"notification","from":"ID","to":"bob"},"payload":{}}`),
		"register of IAT":    asks(http.MethodPost, "/a2a", `{"header":{"msg_id":"m","type":"request","from":"al","to":"agora"},"payload":{"action":"register","agent":"ID"}}`),
		"/a2a/events?agent=": asks(http.MethodGet, "/a2a/events?agent=ID", ""),
		"RegisterAgent": func(id string) error {
			_, err := g.RegisterAgent(ctx, &aip.AgentInfo{AgentId: id, Address: "192.0.2.1:1"})
			return invalid(err)
		},
		"RegisterTool": func(id string) error {
			_, err := g.RegisterTool(ctx, &aip.ToolBoxInfo{ToolboxId: id, Address: "192.0.2.1:1"})
			return invalid(err)
		},
		"the Go client": func(id string) error {
			_, err := client.Dial(ctx, client.Config{URLs: []string{d.public[0]}, Agent: id})
			return err
		},
		"the Go client of AIP": func(id string) error {
			_, err := clientaip.NewAgent(clientaip.Config{ID: id})
			return err
		},
		"the Go client of IAT": func(id string) error {
			_, err := iat.New(iat.Config{URLs: []string{web}, Agent: id})
			return err
		},
	}
	named := map[string]func(id string) error{
		"send":                   frame("?agent_id=al", `{"type":"send","to":"ID","payload":1}`),
		"cancel":                 frame("?agent_id=al", `{"type":"cancel","to":"ID","stream_id":"s"}`),
		"POST /agents/{id}/ask":  asks(http.MethodPost, "/agents/ID/ask", `{}`),
		"POST /a2a to":           asks(http.MethodPost, "/a2a", `{"header":{"msg_id":"m","type":"notification","from":"al","to":"ID"},"payload":{}}`),
		"GET /agents/{id}":       asks(http.MethodGet, "/agents/ID", ""),
		"POST /agents/{}/ask as": asks(http.MethodPost, "/agents/bob/ask?as=ID", `{}`),
	}
	for id, everywhere := range badIDs {
		for door, try := range becomes {
			if err := try(id); err == nil || agora.AsError(err).Code != agora.InvalidRequest {
				t.Errorf("%s with %q: %v", door, id, err)
			}
		}
		if !everywhere {
			continue // nobody has it: the one who asks for it waits
		}
		for door, try := range named {
			if err := try(id); err == nil || agora.AsError(err).Code != agora.InvalidRequest {
				t.Errorf("%s with %q: %v", door, id, err)
			}
		}
	}
}
