package simcluster

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/presence"
)

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0
	presence.LogClient(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// TestPlay plays the seeds that the environment names.
func TestPlay(t *testing.T) {
	first, _ := strconv.ParseUint(os.Getenv("FIRST"), 10, 64)
	n, _ := strconv.ParseUint(os.Getenv("N"), 10, 64)
	for seed := first; seed < first+n; seed++ {
		t0 := time.Now()
		p := MakePlan(seed)
		p.Logs = os.Getenv("LOGS") != ""
		r := Play(t, p)
		fmt.Println(seed, "fake", r.Took, "real", time.Since(t0), r.Seen, len(r.Plan.Steps), r.Plan.Losses, r.Plan.Records)
		if len(r.Failures) > 0 {
			fmt.Println("FAILURES", strings.Join(r.Failures, "\n"))
			_ = os.WriteFile(fmt.Sprint("/tmp/story.", seed), []byte(strings.Join(r.Story, "\n")), 0o600)
		}
	}
}
