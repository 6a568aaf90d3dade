// Command toolbox offers two tools to every agent: one adds numbers, one counts words.
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
	listen, id := flag.String("listen", "127.0.0.1:0", "where to serve: gateways dial it"), flag.String("id", "example_toolbox", "id to be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := aip.Config{ID: *id, Gateways: []string{*gateways}, Listen: *listen, Token: os.Getenv("AGORA_TOKEN"), OnStatus: func(s aip.Status) { fmt.Println("*", s) }}
	if err := serve(ctx, cfg); err != nil {
		log.Fatal(err)
	}
}

// serve offers the tools until ctx ends.
func serve(ctx context.Context, cfg aip.Config) error {
	box, err := aip.NewToolbox(cfg)
	if err != nil {
		return err
	}
	defer box.Close()
	if err := aip.AddFunc(box, aip.Tool{Name: "add", Description: "adds numbers"}, add); err != nil {
		return err
	}
	if err := aip.AddFunc(box, aip.Tool{Name: "word_count", Description: "counts words"}, count); err != nil {
		return err
	}
	return box.Serve(ctx)
}

func add(_ context.Context, args struct {
	Numbers []float64 `json:"numbers"`
}) (any, error) {
	var sum float64
	for _, x := range args.Numbers {
		sum += x
	}
	return sum, nil
}

func count(_ context.Context, args struct {
	Text string `json:"text"`
}) (any, error) {
	return len(strings.Fields(args.Text)), nil
}
