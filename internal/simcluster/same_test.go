//go:build oneseed

package simcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestStories writes the stories of the seeds that the environment names to its folder, where two processes' can be compared.
func TestStories(t *testing.T) {
	dir := os.Getenv("STORIES")
	first, _ := strconv.ParseUint(os.Getenv("FIRST"), 10, 64)
	n, _ := strconv.ParseUint(os.Getenv("N"), 10, 64)
	for seed := first; dir != "" && seed < first+n; seed++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(seed)), []byte(tale(t, seed)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tale is all that can be told of a seed's history.
func tale(t *testing.T, seed uint64) string {
	r := Play(t, MakePlan(seed))
	return fmt.Sprintln(strings.Join(r.Story, "\n"), r.Seen, r.Took, r.Failures)
}
