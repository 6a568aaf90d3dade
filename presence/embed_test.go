package presence_test

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/presence"
)

func TestAnEmbeddedServerKnowsTheScriptsAndOutlivesTheirErrors(t *testing.T) {
	e, err := presence.Embed()
	ok(t, err)
	defer e.Close()
	s := &server{t: t, url: "redis://" + e.Addr()}
	c := s.client()
	defer c.Close()
	run := func(script string, args ...any) (int, error) {
		return c.EvalSha(t.Context(), presence.Digest(script), []string{"k", "k", "k", "k", "k"}, args...).Int()
	}
	if n, err := run("whole"); err != nil || n != 0 {
		t.Errorf("a script that nobody has loaded = %d, %v; want 0", n, err)
	}
	if _, err := run("renew"); err == nil {
		t.Error("a script without its values is no error")
	}
	if err := c.Eval(t.Context(), "return {nothing}", nil).Err(); err == nil {
		t.Error("a script of somebody else's that is wrong is no error")
	}
	ok(t, c.Eval(t.Context(), "redis.call('SET', KEYS[1], 'v') return 1", []string{"k"}).Err())
	if _, err := run("begin", 1); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a key of another kind = %v, want WRONGTYPE", err)
	}
	if n, err := run("whole"); err != nil || n != 1 {
		t.Errorf("a script behind errors = %d, %v; want 1", n, err)
	}
	_, err = s.store(presence.Config{}).Sessions.Claim(t.Context(), claimant("a", "e1"))
	ok(t, err)
}
