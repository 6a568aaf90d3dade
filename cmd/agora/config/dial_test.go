package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// What an edge may dial is what its node's dialer says, by the settings of the verb.
func TestSettingsSayWhatIsDialled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verb    string
		args    []string
		address string
		denied  bool
	}{
		{"edge", nil, "127.0.0.1:1", true}, {"edge", nil, "100.100.100.200:1", true}, {"edge", nil, "169.254.169.254:1", true}, {"edge", nil, "10.0.0.1:1", false},
		{"edge", []string{"--node.dial-allow", "127.0.0.0/8"}, "127.0.0.1:1", false},
		{"edge", []string{"--node.dial-deny", "10.0.0.0/8"}, "10.0.0.1:1", true}, {"edge", []string{"--node.dial-deny", "10.0.0.0/8"}, "127.0.0.1:1", false},
		{"dev", nil, "127.0.0.1:1", false}, {"dev", nil, "169.254.169.254:1", true},
	} {
		f := pflag.NewFlagSet(c.verb, pflag.ContinueOnError)
		var s *Settings
		if c.verb == "edge" {
			o := new(Edge)
			o.Flags(f)
			s = &o.Settings
		} else {
			o := new(Dev)
			o.Flags(f)
			s = &o.Settings
		}
		if err := f.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		n := s.Node("e", nil)
		if n.Dialer == nil {
			t.Fatalf("%s %q: its node has no dialer", c.verb, c.args)
		}
		if err := n.Dialer.Check(await.Context(t), c.address); (agora.AsError(err) != nil && agora.AsError(err).Code == agora.Forbidden) != c.denied {
			t.Errorf("%s %q: %s: %v, want it denied: %v", c.verb, c.args, c.address, err, c.denied)
		}
	}
	for _, name := range []string{"node.dial-deny", "node.dial-allow"} {
		o := new(Edge)
		f := pflag.NewFlagSet("edge", pflag.ContinueOnError)
		o.Flags(f)
		if err := f.Parse([]string{"--auth", "none", "--" + name, "10.0.0.0/99"}); err != nil {
			t.Fatal(err)
		}
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), name+`: "10.0.0.0/99"`) {
			t.Errorf("%s that makes no sense: %v", name, err)
		}
	}
}
