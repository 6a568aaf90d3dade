package aip_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/agora-relay/agora/client/aip"
)

// gateway starts a gateway; any edge of a cluster is one too.
func gateway() (address string, stop func()) {
	g, err := aip.NewGateway(aip.GatewayConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Start(); err != nil {
		log.Fatal(err)
	}
	return g.Address(), func() { g.Close() }
}

// An agent answers what it is asked, piece by piece.
func Example() {
	address, stop := gateway() // or those of your edges, like "127.0.0.1:50000"
	defer stop()
	ctx := context.Background()

	bob, err := aip.NewAgent(aip.Config{ID: "bob", Gateways: []string{address}})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	bob.Handle(func(_ context.Context, s *aip.Session) error {
		for m := range s.Messages() {
			for _, word := range strings.Fields(aip.TextOf(m.GetContent())) {
				if err := s.Reply(aip.Text(strings.ToUpper(word))); err != nil {
					return err
				}
			}
		}
		return s.Finish(aip.Text("that was all"))
	})
	if err := bob.Start(); err != nil { // or Serve, which does all of it until its context ends
		log.Fatal(err)
	}
	if err := bob.Register(ctx); err != nil {
		log.Fatal(err)
	}

	alice, err := aip.NewAgent(aip.Config{ID: "alice", Gateways: []string{address}})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	for m, err := range alice.Ask(ctx, "bob", aip.Text("good morning")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.GetSessionStatus(), aip.TextOf(m.GetContent()))
	}
	// Output:
	// HOLD_RESPONSE GOOD
	// HOLD_RESPONSE MORNING
	// STOP_RESPONSE that was all
}

// A tool is a function whose arguments are a struct.
func ExampleAddFunc() {
	address, stop := gateway()
	defer stop()
	ctx := context.Background()

	box, err := aip.NewToolbox(aip.Config{ID: "box", Gateways: []string{address}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	if err := aip.AddFunc(box, aip.Tool{Name: "add", Description: "adds two numbers"}, func(_ context.Context, s sum) (any, error) { return s.A + s.B, nil }); err != nil {
		log.Fatal(err)
	}
	if err := box.Start(); err != nil {
		log.Fatal(err)
	}
	if err := box.Register(ctx); err != nil {
		log.Fatal(err)
	}

	alice, err := aip.NewAgent(aip.Config{ID: "alice", Gateways: []string{address}})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	resp, err := alice.CallTool(ctx, "box", "add", sum{A: 40, B: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.GetIsError(), aip.TextOf(resp.GetContent()))
	// Output: false 42
}
