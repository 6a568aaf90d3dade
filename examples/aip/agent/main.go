// Command agent answers the one who begins a session with it: it says each text back word by word, and at the end how
// many words there were, as example_toolbox counts them if it is there.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agora-relay/agora/client/aip"
)

func main() {
	gateways := flag.String("gateway", "127.0.0.1:50000", "addresses of gateways, with commas")
	listen, id := flag.String("listen", "127.0.0.1:0", "where to serve: gateways dial it"), flag.String("id", "example_agent", "id to be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := aip.Config{ID: *id, Gateways: []string{*gateways}, Listen: *listen, Token: os.Getenv("AGORA_TOKEN"), OnStatus: func(s aip.Status) { fmt.Println("*", s) }}
	agent, err := aip.NewAgent(cfg)
	if err != nil {
		log.Fatal(err)
	}
	agent.Handle(func(ctx context.Context, s *aip.Session) error { return converse(ctx, agent, s) })
	if err := agent.Serve(ctx); err != nil {
		log.Fatal(err)
	}
}

// converse holds one session.
func converse(ctx context.Context, agent *aip.Agent, s *aip.Session) error {
	var heard []string
	for m := range s.Messages() {
		words := strings.Fields(aip.TextOf(m.GetContent()))
		for _, word := range words {
			if err := s.Reply(aip.Text(word + " ")); err != nil {
				return err
			}
		}
		heard = append(heard, words...)
	}
	said := "I can't count them"
	count, err := agent.CallTool(ctx, "example_toolbox", "word_count", map[string]string{"text": strings.Join(heard, " ")})
	if err == nil && !count.GetIsError() {
		said = "words: " + aip.TextOf(count.GetContent())
	}
	return s.Finish(aip.Text("(" + said + ")"))
}
