package config

import (
	"strings"
	"testing"
	"time"
)

func TestSettingsOfAIPReachItsDoor(t *testing.T) {
	t.Parallel()
	s, err := parse(t, nil, "--aip.advertise", "gw.example.org:443", "--aip.max-message", "1MiB", "--aip.dial-timeout", "2s",
		"--aip.heartbeat-timeout", "3s", "--aip.stop-wait", "4s", "--aip.link", "a:1,b:2", "--aip.gateway-id", "here", "--limits.nodes", "7", "--server.max-header", "8KiB")
	if err != nil {
		t.Fatal(err)
	}
	c := s.AIPDoor(nil)
	if c.Advertise != "gw.example.org:443" || c.MaxMessage != 1<<20 || c.DialTimeout != 2*time.Second || c.HeartbeatTimeout != 3*time.Second ||
		c.StopWait != 4*time.Second || strings.Join(c.Links, " ") != "a:1 b:2" || c.GatewayID != "here" || s.Limits().Nodes != 7 || c.MaxHeader != 8<<10 {
		t.Errorf("the door is set up by %+v", c)
	}
}
