package iat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/agora-relay/agora/client/iat"
)

// serve runs an agent until stop is called.
func serve(urls []string, prepare func(*iat.Agent)) (stop func()) {
	there := make(chan iat.Status, 1)
	a, err := iat.NewAgent(iat.Config{URLs: urls, Agent: "bob", OnStatus: func(s iat.Status) {
		select {
		case there <- s:
		default: // it was there before
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	prepare(a)
	go a.Serve(context.Background()) // until Close, which waits for it
	<-there
	return func() { a.Close() }
}

// A sub-agent does a task: it says what it finds, piece by piece, calls a tool of the host and asks for approval.
func Example() {
	urls, stop := devCluster() // or those of your edges, like "http://127.0.0.1:8080"
	defer stop()
	defer serve(urls, func(a *iat.Agent) {
		a.OnExecute(func(ctx context.Context, t *iat.Task) (any, error) {
			if err := t.Chunk("looking around\n"); err != nil {
				return nil, err
			}
			files, err := t.CallTool(ctx, "list_files", map[string]string{"like": "*.bak"})
			if err != nil {
				return nil, err
			}
			approved, err := t.RequireApproval(ctx, fmt.Sprintf("delete %s", files))
			return fmt.Sprintf("approved: %v", approved), err
		})
	})()

	h, err := iat.NewHost(iat.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.OnTool("list_files", "names of files", `{"type":"object"}`, func(context.Context, iat.Call) (any, error) {
		return []string{"a.bak"}, nil
	})
	h.OnApproval(func(_ context.Context, a iat.Approval) (bool, string, error) {
		return a.What() == `delete ["a.bak"]`, "go on", nil // or ask a person
	})
	err = h.ServeWhile(context.Background(), func(ctx context.Context) error {
		run, err := h.Execute(ctx, "bob", iat.Execute{Query: "tidy", AllowedTools: []string{"list_files"}})
		if err != nil {
			return err
		}
		defer run.Close()
		for chunk := range run.Chunks() { // where they end with an error, so does Result
			fmt.Print(chunk.Text)
		}
		result, err := run.Result()
		if err == nil {
			fmt.Println(result.Summary)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// looking around
	// approved: true
}

// A tool is called by whoever may, without a task.
func ExampleClient_CallTool() {
	urls, stop := devCluster()
	defer stop()
	defer serve(urls, func(a *iat.Agent) {
		a.OnTool("word_count", "counts words", `{"type":"object","required":["text"]}`, func(_ context.Context, c iat.Call) (any, error) {
			var p struct{ Text string }
			if err := json.Unmarshal(c.Arguments, &p); err != nil {
				return nil, err
			}
			return map[string]int{"words": len(strings.Fields(p.Text))}, nil
		})
	})()

	c, err := iat.New(iat.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	result, err := c.CallTool(context.Background(), "bob", "word_count", map[string]string{"text": "a b c"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", result)
	// Output: {"words":3}
}

// An envelope is sent as it stands, and taken by whoever it is for.
func ExampleClient_Events() {
	urls, stop := devCluster()
	defer stop()
	ctx := context.Background()
	alice, err := iat.New(iat.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	note := &iat.Envelope{Header: iat.Header{Type: iat.Notification, To: "alice"}, Payload: json.RawMessage(`{"action":"log","level":"info","message":"hi"}`)}
	greet := func(iat.Status) {
		if err := alice.Send(ctx, note); err != nil {
			log.Fatal(err)
		}
	}
	me, err := iat.New(iat.Config{URLs: urls, Agent: "alice", OnStatus: greet}) // once she is there
	if err != nil {
		log.Fatal(err)
	}
	defer me.Close()
	for e, err := range me.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", e.Header.From, e.Payload)
		break
	}
	// Output: alice: {"action":"log","level":"info","message":"hi"}
}
