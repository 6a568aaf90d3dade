package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// EdgeUser and EdgePassword are of the user that edges are at the servers of [Processes] and at every [RedisServer]: it
// may do there what the shipped rights allow, so that a test fails which needs more. Anyone who gives no name may do
// everything.
const EdgeUser, EdgePassword = "edge", "s3cret"

// shipped returns a file below deploy.
func shipped(t testing.TB, path string) string {
	t.Helper()
	root, err := moduleRoot()
	if err == nil {
		var b []byte
		if b, err = os.ReadFile(filepath.Join(root, "deploy", path)); err == nil {
			return string(b)
		}
	}
	t.Fatalf("read the rights that are shipped: %v", err)
	return ""
}

var moduleRoot = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
})

// redisUsers has a redis-server know the users.
func redisUsers(t testing.TB, sharded bool) []string {
	t.Helper()
	flags := []string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "--user", EdgeUser, "on", ">" + EdgePassword}
	flags = append(flags, strings.Fields(shipped(t, "redis/edge.acl"))...)
	if sharded { // docs/security.md
		flags = append(flags, "+cluster|slots", "+cluster|shards", "+readonly", "+command")
	}
	return flags
}

// natsUsers has a nats-server know the users.
func natsUsers(t testing.TB) string {
	t.Helper()
	return `authorization { users: [
  { user: admin, password: ` + EdgePassword + ` }
  { user: ` + EdgeUser + `, password: ` + EdgePassword + `, permissions: {
` + shipped(t, "nats/edge-permissions.conf") + `  } }
] }
no_auth_user: admin
`
}
