// Command host gives a task to a sub-agent: it lends it a tool and a directory, and leaves what that asks approval for
// to `agora approve`.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/agora-relay/agora/client/iat"
)

func main() {
	url := flag.String("url", cmp.Or(os.Getenv("AGORA_URL"), "http://127.0.0.1:8080"), "addresses of edges, with commas")
	id, to := flag.String("agent", "host", "id to be"), flag.String("to", "subagent", "agent that does the task")
	root := flag.String("root", "", "directory that the task is about, an absolute path; a new one if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *root == "" {
		*root, _ = os.MkdirTemp("", "docs") // Execute says where that failed
		os.WriteFile(*root+"/guide.md.bak", []byte("as it was"), 0o600)
	}
	cfg := iat.Config{URLs: strings.Split(*url, ","), Agent: *id, Token: os.Getenv("AGORA_TOKEN"), Root: *root}
	if err := run(ctx, cfg, *to, strings.Join(flag.Args(), " ")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, cfg iat.Config, to, query string) error {
	h, err := iat.NewHost(cfg)
	if err != nil {
		return err
	}
	defer h.Close()
	h.OnTool("list_files", "names of all files", `{"type":"object"}`, func(context.Context, iat.Call) (any, error) { return fs.Glob(os.DirFS(cfg.Root), "*") })
	h.OnThink(func(_ context.Context, t iat.Thought) { fmt.Printf("* %s thinks: %s\n", t.From, t.Text) })
	return h.ServeWhile(ctx, func(ctx context.Context) error {
		task, err := h.Execute(ctx, to, iat.Execute{Query: query, AllowedTools: []string{"list_files"}})
		if err != nil {
			return err
		}
		defer task.Close()
		for chunk := range task.Chunks() { // where they end with an error, so does Result
			fmt.Print(chunk.Text)
		}
		result, err := task.Result()
		if err == nil {
			fmt.Println("done:", result.Summary)
		}
		return err
	})
}
