package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
)

// What credentials can't be used is told by the setting that names them, and never by what is in them.
func TestCredentialsThatCantBeUsedAreToldBySetting(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := account.Seed()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		a    Access
		want string
	}{
		"creds that are none":         {Access{Creds: file("secret")}, "nats.creds"},
		"creds that are not there":    {Access{Creds: "/nowhere"}, "nats.creds"},
		"a seed that is none":         {Access{NKey: file("secret")}, "nats.nkey"},
		"a seed that is not there":    {Access{NKey: "/nowhere"}, "nats.nkey"},
		"the seed of an account":      {Access{NKey: file(string(seed))}, "nats.nkey"},
		"a CA that is none":           {Access{CA: file("secret")}, "nats.tls.ca"},
		"a CA that is not there":      {Access{CA: "/nowhere"}, "nats.tls.ca"},
		"a certificate without a key": {Access{Cert: file("secret")}, "nats.tls.cert"},
	} {
		err := c.a.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), string(seed)) {
			t.Errorf("%s: %v, want a word about %s", name, err, c.want)
		}
	}
}
