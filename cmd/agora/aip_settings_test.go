package main

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/servers"
)

func TestSettingsOfAIPThatMakeNoSenseAreToldInASentence(t *testing.T) {
	t.Parallel()
	for about, c := range map[string]struct {
		args []string
		want string
	}{
		"no address":              {[]string{"--grpc-addr", "50000"}, `grpc-addr: want HOST:PORT, :PORT or none, not "50000"`},
		"a port that is no port":  {[]string{"--grpc-addr", ":port"}, `grpc-addr: want HOST:PORT, :PORT or none, not ":port"`},
		"advertised without host": {[]string{"--aip.advertise", ":50000"}, `aip.advertise: want HOST:PORT, not ":50000"`},
		"advertised without port": {[]string{"--aip.advertise", "a"}, `aip.advertise: want HOST:PORT, not "a"`},
		"tiny messages":           {[]string{"--aip.max-message", "1KiB"}, "aip.max-message must be 64KiB to 256MiB"},
		"huge messages":           {[]string{"--aip.max-message", "1GiB"}, "aip.max-message must be 64KiB to 256MiB"},
		"no time to dial":         {[]string{"--aip.dial-timeout", "0s"}, "aip.dial-timeout must be more than nothing"},
		"an hour to dial":         {[]string{"--aip.dial-timeout", "1h"}, "and 1m at most"},
		"no time for heartbeats":  {[]string{"--aip.heartbeat-timeout", "1ms"}, "aip.heartbeat-timeout must be at least 1s"},
		"no time to stop":         {[]string{"--aip.stop-wait", "0s"}, "aip.stop-wait must be more than nothing"},
		"a link to nowhere":       {[]string{"--aip.link", "10.0.0.1:1,gateway"}, `aip.link: want HOST:PORT, not "gateway"`},
		"links without a port":    {[]string{"--aip.link", "a:1", "--grpc-addr", "none"}, "aip.link needs grpc-addr"},
		"a name with a space":     {[]string{"--aip.gateway-id", "a b"}, "aip.gateway-id can't be more than 64 letters"},
		"no nodes":                {[]string{"--limits.nodes", "0"}, "limits.nodes must be at least 1"},
		"a certificate alone":     {[]string{"--aip.node-tls.ca", "a", "--aip.node-tls.cert", "b"}, "aip.node-tls.cert and aip.node-tls.key go together"},
		"a certificate, no CA":    {[]string{"--aip.node-tls.cert", "b", "--aip.node-tls.key", "c"}, "aip.node-tls.cert needs aip.node-tls.ca"},
	} {
		status, _, stderr := command(t, append([]string{"config", "check", "--auth", "none"}, c.args...)...)
		if status != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: ended with %d: %s, want %q", about, status, stderr, c.want)
		}
	}
}

func TestFilesToDialNodesWithAreChecked(t *testing.T) {
	t.Parallel()
	certs, other := servers.NewCertificates(t), servers.NewCertificates(t)
	for about, c := range map[string]struct {
		args []string
		want string // empty for no fault
	}{
		"a CA":                {[]string{"--aip.node-tls.ca", certs.CA}, ""},
		"and a certificate":   {[]string{"--aip.node-tls.ca", certs.CA, "--aip.node-tls.cert", certs.ClientCert, "--aip.node-tls.key", certs.ClientKey}, ""},
		"a file that is none": {[]string{"--aip.node-tls.ca", "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
		"no certificate":      {[]string{"--aip.node-tls.ca", certs.ServerKey}, certs.ServerKey + ": there is no certificate in it"},
		"another's key":       {[]string{"--aip.node-tls.ca", certs.CA, "--aip.node-tls.cert", certs.ClientCert, "--aip.node-tls.key", other.ClientKey}, certs.ClientCert + " and " + other.ClientKey},
	} {
		status, _, stderr := command(t, append([]string{"config", "check", "--auth", "none"}, c.args...)...)
		if (status == 0) != (c.want == "") || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: ended with %d: %s, want %q", about, status, stderr, c.want)
		}
	}
}

// Without authentication nobody else may reach `agora dev`, by whatever port.
func TestDevIsNotOpenToOthersByGRPCUnlessItIsTold(t *testing.T) {
	t.Parallel()
	status, _, stderr := command(t, "dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0", "--grpc-addr", "0.0.0.0:0")
	if status == 0 || !strings.Contains(stderr, "0.0.0.0:0 can be reached by others") {
		t.Errorf("it ended with %d: %s", status, stderr)
	}
}

func TestAPortForGRPCThatIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	status, _, stderr := command(t, "dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0", "--grpc-addr", d.grpc[0])
	if status == 0 || !strings.Contains(stderr, "grpc-addr: listen tcp "+d.grpc[0]) {
		t.Errorf("it ended with %d: %s", status, stderr)
	}
}
