package serve

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthTellsWhyAnEdgeIsNotReady(t *testing.T) {
	s := httptest.NewServer(startingHandler())
	defer s.Close()
	cmd := NewHealth()
	cmd.SetArgs([]string{"--admin-addr", s.Listener.Addr().String()})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "the edge is starting") {
		t.Errorf("it ended with %v, want why", err)
	}
}
