package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newHealth() *cobra.Command {
	var addr string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say whether the edge on this machine can serve agents",
		Long: "Ask the edge whose admin port is at --admin-addr whether it can serve agents: its /readyz. For health checks of\n" +
			"containers, where there is nothing else to ask with. The address may stand where the edge itself has it from:\n" +
			"AGORA_ADMIN_ADDR, or the file of AGORA_CONFIG.\n\n" +
			"Exit status: 0 it can, 1 it can't, or does not answer, 2 wrong usage.",
		Example: "  agora health --admin-addr 127.0.0.1:9100",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			said, err := askReady(ctx, addr)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
	fileFlag(cmd.Flags())
	cmd.Flags().StringVar(&addr, "admin-addr", "127.0.0.1:9100", "where /readyz is: the edge's own setting")
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long it may take to answer")
	return cmd
}

// askReady returns what the edge at addr says when it can serve agents; else why it can't is the error.
func askReady(ctx context.Context, addr string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+nearby(addr)+"/readyz", nil)
	if err != nil {
		return "", fmt.Errorf("admin-addr: want HOST:PORT or :PORT, not %q", addr)
	}
	// No proxy of the environment: it would be asked for this machine's edge.
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	said := strings.TrimSpace(string(body))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("not ready: %s: %s", resp.Status, said)
	}
	return said, err
}

// nearby returns where a port that listens at addr is reached from this machine.
func nearby(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
