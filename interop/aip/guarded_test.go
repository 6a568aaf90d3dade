//go:build interop

package aip

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

func TestProgramsPresentTokensOverTLS(t *testing.T) {
	certs := servers.NewCertificates(t)
	token, line, err := auth.NewToken(auth.Line{Name: "programs", Agents: []string{"caller", "agent-*", "toolbox-*", "all-*", "some-*", "others-*", "al-*", "bob-*", "box-*"}})
	if err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--auth", "file:"+tokens, "--tls.cert", certs.ServerCert, "--tls.key", certs.ServerKey)
	for _, p := range []program{nodeProgram(t), pythonProgram(t)} {
		p.env = append(p.env, "AIP_TLS=1", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH="+certs.CA, "AIP_TOKEN="+token)
		peer := p.serves(t, c.GRPC)
		t.Run(p.language, func(t *testing.T) {
			t.Parallel()
			scenes := []string{"talk", "tools", "statuses", "token", "updates"}
			if p.language == "python" {
				scenes = append(scenes, "library")
			}
			p.plays(await.Context(t), t, peer, c.GRPC, scenes...)
		})
	}
}

func TestWhoIsBusySaysWhenToTryAgain(t *testing.T) {
	c := start(t, "--limits.calls", "1")
	for _, p := range []program{nodeProgram(t), pythonProgram(t)} {
		p.plays(await.Context(t), t, p.serves(t, c.GRPC), c.GRPC, "busy")
	}
}
