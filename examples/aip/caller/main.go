// Command caller asks example_agent, prints its answers as they come, and has example_toolbox add numbers.
package main

import (
	"cmp"
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
	id := flag.String("id", "example_caller", "id to be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := aip.Config{ID: *id, Gateways: []string{*gateways}, Token: os.Getenv("AGORA_TOKEN")}
	if err := run(ctx, cfg, cmp.Or(strings.Join(flag.Args(), " "), "how many words are these?")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, cfg aip.Config, question string) error {
	me, err := aip.NewAgent(cfg) // who only asks is neither started nor registered
	if err != nil {
		return err
	}
	defer me.Close()
	for m, err := range me.Ask(ctx, "example_agent", aip.Text(question)) {
		if err != nil {
			return err
		}
		fmt.Print(aip.TextOf(m.GetContent()))
	}
	fmt.Println()
	sum, err := me.CallTool(ctx, "example_toolbox", "add", map[string]any{"numbers": []int{40, 2}})
	if err != nil {
		return err
	}
	if sum.GetIsError() {
		return fmt.Errorf("the tool failed: %s", sum.GetErrorMessage())
	}
	fmt.Println("40 + 2 =", aip.TextOf(sum.GetContent()))
	return nil
}
