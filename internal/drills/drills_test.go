package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/soak"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*load, []string) {
	t.Helper()
	c := agoratest.Start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Minute}})
	var edges []string
	for k := range c.Size() {
		edges = append(edges, c.URL(k))
	}
	l, err := startLoad(await.Context(t), edges[0], 100, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close() })
	return l, edges
}

func compared(t *testing.T, l *load, edges []string) listing {
	t.Helper()
	got, err := compare(await.Context(t), edges, l.run.Agents(), l.run.Spaces())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAgentsThatCrashAreListedUntilTheirGraceIsOver(t *testing.T) {
	t.Parallel()
	l, edges := start(t)
	if got := compared(t, l, edges); len(got.ghosts) != crashes+1 || len(got.missing) > 0 {
		t.Errorf("before they crash: %v, want the %d doomed, and their space", got, crashes)
	}
	l.crash()
	report, late := l.finish(await.Context(t), await.Long)
	if late != nil || report.Failed() || report.Total.Stored == 0 {
		t.Errorf("finish = %+v, %v; want messages, and no violation", report, late)
	}
	await.True(t, "lists without ghosts", func() bool {
		got := compared(t, l, edges)
		return len(got.ghosts) == 0 && len(got.missing) == 0
	})
}

func TestListsAreHeldAgainstWhoIsConnected(t *testing.T) {
	t.Parallel()
	l, edges := start(t)
	stranger, err := client.Dial(await.Context(t), client.Config{URLs: edges[:1], Agent: "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	got, err := compare(await.Context(t), edges, append(l.run.Agents(), "absent"), map[string]int{l.run.Name() + "-0": 100})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.ghosts, "stranger") || !slices.Contains(got.missing, "absent") {
		t.Errorf("compare = %+v, want stranger as a ghost, and absent missing", got)
	}
	if !slices.ContainsFunc(got.missing, func(s string) bool { return strings.HasSuffix(s, " in "+l.run.Name()+"-0") }) {
		t.Errorf("missing = %v, want members of a space", got.missing)
	}
}

func TestTheTableTellsWhatFailed(t *testing.T) {
	t.Parallel()
	good := result{name: "rollout", took: 90 * time.Second, report: soak.Report{Total: verify.Counts{Stored: 17}, Away: 0.21}}
	if err := (table{good}).failed(); err != nil {
		t.Errorf("failed = %v, want nil", err)
	}
	var b strings.Builder
	if err := (table{good}).print(&b); err != nil {
		t.Fatal(err)
	}
	if want := "| rollout | 90 s | 17 | 0 | 0 | 0 | 0 | 0.2 s | 0 | 0 s |\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("table = %s\nwant %s at its end", &b, want)
	}
	for what, bad := range map[string]result{
		"late":    {late: errors.New("late")},
		"lost":    {report: soak.Report{Violations: 1, Listed: []verify.Violation{{Kind: verify.Lost}}}},
		"ghost":   {lists: listing{ghosts: []string{"ghost"}}},
		"missing": {lists: listing{missing: []string{"missing"}}},
	} {
		if err := (table{good, bad}).failed(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("failed = %v, want it to say %s", err, what)
		}
	}
}

func TestDrillsAreChosenByName(t *testing.T) {
	t.Parallel()
	all := drills(&cluster{}, "next")
	some, err := chosen(all, "node drain,rollout")
	if err != nil || len(some) != 2 || some[0].name != "rollout" {
		t.Errorf("chosen = %v, %v; want rollout, and node drain after it", some, err)
	}
	if _, err := chosen(all, "rollout,x"); err == nil {
		t.Error("a drill called x was found")
	}
	if err := run(t.Context(), []string{"-only", "x"}, io.Discard, io.Discard); err == nil {
		t.Error("run played a drill called x")
	}
}

func TestThePageHasTheFiguresOfEachDrill(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drills(&cluster{}, "next") {
		if !strings.Contains(string(page), "\n| "+d.name+" |") {
			t.Errorf("docs/operations.md has no row of %s: play make kubernetes, and copy bin/kubernetes/table.md", d.name)
		}
	}
}
