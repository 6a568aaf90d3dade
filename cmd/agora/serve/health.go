package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/spf13/cobra"
)

func NewHealth() *cobra.Command {
	var addr string
	var admin config.TLS
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say whether the edge on this machine can serve agents",
		Long: "Ask the edge whose admin port is at --admin-addr whether it can serve agents: its /readyz. For health checks of\n" +
			"containers, where there is nothing else to ask with. Address and certificate may stand where the edge itself has them\n" +
			"from: AGORA_ADMIN_ADDR and so on, or the file of AGORA_CONFIG.\n\n" +
			"Exit status: 0 it can, 1 it can't, or does not answer, 2 wrong usage.",
		Example: "  agora health --admin-addr 127.0.0.1:9100",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			said, err := askReady(ctx, addr, admin)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
	config.FileFlag(cmd.Flags())
	cmd.Flags().StringVar(&addr, "admin-addr", config.DefaultAdmin, "where /readyz is: the edge's own setting")
	admin.Flags(cmd.Flags(), "admin.tls", "admin-addr is")
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long it may take to answer")
	return cmd
}

// askReady returns what the edge at addr says when it can serve agents; else why it can't is the error.
func askReady(ctx context.Context, addr string, admin config.TLS) (string, error) {
	scheme, transport := "http", &http.Transport{DisableKeepAlives: true} // no proxy: it would be asked for its own machine's edge
	if admin.Cert != "" {
		own, err := tls.LoadX509KeyPair(admin.Cert, admin.Key)
		if err != nil {
			return "", fmt.Errorf("admin.tls.cert: %w", err)
		}
		// Whose certificate it is need not be proved: nothing is told, and what answers at this machine's port is
		// believed.
		scheme, transport.TLSClientConfig = "https", &tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+config.Nearby(addr)+"/readyz", nil)
	if err != nil {
		return "", fmt.Errorf("admin-addr: want HOST:PORT or :PORT, not %q", addr)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
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
