// Command subagent does the tasks that hosts give it: it finds backup files with the host's tool, and deletes them
// where that is approved.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/agora-relay/agora/client/iat"
)

func main() {
	url := flag.String("url", cmp.Or(os.Getenv("AGORA_URL"), "http://127.0.0.1:8080"), "addresses of edges, with commas")
	id := flag.String("agent", "subagent", "id to be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg := iat.Config{URLs: strings.Split(*url, ","), Agent: *id, Token: os.Getenv("AGORA_TOKEN")}
	cfg.OnStatus = func(s iat.Status) {
		if s.Err == nil {
			fmt.Println("*", *id, "waits for tasks at", s.Edge)
		}
	}
	a, err := iat.NewAgent(cfg)
	if err != nil {
		log.Fatal(err)
	}
	a.OnExecute(tidy)
	if err := a.Serve(ctx); err != nil {
		log.Fatal(err)
	}
}

func tidy(ctx context.Context, t *iat.Task) (any, error) {
	t.Think("which files are backups?")
	raw, err := t.CallTool(ctx, "list_files", nil)
	var names []string
	if err := cmp.Or(err, json.Unmarshal(raw, &names)); err != nil {
		return nil, err
	}
	dir, err := t.Workspace() // the host's, which nothing leaves
	for i := 0; err == nil && i < len(names); i++ {
		name, approved := names[i], false
		if t.Chunk("looking at " + name + "\n"); strings.HasSuffix(name, ".bak") {
			approved, err = t.RequireApproval(ctx, "delete "+name)
		}
		if approved {
			err = dir.Remove(name)
			t.Chunk("deleted " + name + "\n")
		}
	}
	return t.Query + ": done", err
}
