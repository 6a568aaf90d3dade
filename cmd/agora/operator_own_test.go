package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/servers"
)

// inProcess runs the program in a process of its own, with more environment, and returns what it said and its exit
// status.
func inProcess(t *testing.T, env []string, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// adminPort returns the port that a running edge answers operators at.
func (r *running) adminPort() string {
	r.t.Helper()
	u, err := url.Parse(r.admin)
	if err != nil {
		r.t.Fatal(err)
	}
	return u.Port()
}

func TestOperatorsFindTheEdgeOnTheirMachineAsItIsSetUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := write("token", "let-me-in\n")
	certs, args := servers.NewCertificates(t), append(backends(t), "--admin-addr", "0.0.0.0:0")
	plain := launch(t, args...).ready().adminPort()
	shut := launch(t, append(args, "--admin.token-file", token)...).ready().adminPort()
	tls := launch(t, append(args, "--admin.tls.cert", certs.ServerCert, "--admin.tls.key", certs.ServerKey)...).ready().adminPort()
	for about, env := range map[string][]string{
		"its address by environment": {"AGORA_ADMIN_ADDR=0.0.0.0:" + plain},
		"its address in its file":    {"AGORA_CONFIG=" + write("plain.yaml", "auth: none\nadmin-addr: :"+plain+"\n")},
		"a file that has become wrong": {"AGORA_CONFIG=" + write("wrong.yaml",
			fmt.Sprintf("admin-addr: :%s\nadress: x\n", plain))},
		"a token by environment": {"AGORA_ADMIN_ADDR=:" + shut, "AGORA_ADMIN_TOKEN_FILE=" + token},
		"a token in its file":    {"AGORA_CONFIG=" + write("shut.yaml", "admin-addr: :"+shut+"\nadmin.token-file: "+token+"\n")},
		"TLS":                    {"AGORA_ADMIN_ADDR=:" + tls, "AGORA_ADMIN_TLS_CERT=" + certs.ServerCert, "AGORA_ADMIN_TLS_KEY=" + certs.ServerKey},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			if out, status := inProcess(t, env, "inspect", "edge"); status != 0 || !strings.Contains(out, "lease renewed") {
				t.Errorf("agora inspect edge ended with %d: %s", status, out)
			}
		})
	}
	t.Run("none is let in without what its edge asks for", func(t *testing.T) {
		t.Parallel()
		if out, status := inProcess(t, []string{"AGORA_ADMIN_ADDR=:" + shut}, "inspect", "edge"); status != exit.Forbidden {
			t.Errorf("without the token it ended with %d: %s", status, out)
		}
		other := []string{"AGORA_ADMIN_ADDR=:" + tls, "AGORA_ADMIN_TLS_CERT=" + certs.ClientCert, "AGORA_ADMIN_TLS_KEY=" + certs.ClientKey}
		if out, status := inProcess(t, other, "inspect", "edge"); status != exit.Unavailable || !strings.Contains(out, "does not present the certificate") {
			t.Errorf("with another certificate in its file it ended with %d: %s", status, out)
		}
	})
}
