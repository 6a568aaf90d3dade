package cli

import (
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/logging"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/sidecar"
)

func newSidecar() *cobra.Command {
	s := &sidecarVerb{}
	cmd := &cobra.Command{
		Use:   "sidecar --agent-url URL",
		Short: "Make a plain HTTP agent a member of the cluster",
		Long: "Make an agent that speaks plain HTTP, and shows a card at GET /card, a member of the cluster: it is registered with\n" +
			"its skills, answers cards and handoffs by libp2p, and requests of agents of every dialect. No path is reached but\n" +
			"those of its card's skills, /card, and the one of --deliver. The agent may be started later, and again.\n" +
			"SIGTERM ends it, once requests in progress are answered, and the agent's membership.",
		Example: "  agora sidecar --agent-url http://127.0.0.1:8000\n  agora sidecar --agent-url http://127.0.0.1:8000 --id plain --url https://e1.example.com,https://e2.example.com \\\n" +
			"    --p2p-key plain.key --deliver /messages --admin-addr :8001",
		Args: cobra.NoArgs,
		RunE: s.run,
	}
	f := cmd.Flags()
	f.StringVar(&s.cfg.Agent, "agent-url", "", "address of the agent, which may have a path")
	f.StringVar(&s.agent, "id", "", "agent id to be (default: the name of the agent's card)")
	f.StringVar(&s.url, "url", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; http:// and https:// are as good as ws:// and wss://")
	s.Credentials.Flags(f, "", access.ReadAgain)
	f.StringVar(&s.cfg.Peer.Listen, "p2p-addr", sidecar.DefaultListen, "where peers of libp2p reach it, over TCP and WebSocket: HOST:PORT or /ip4/HOST/tcp/PORT; port 0 is any free one, none: through relays alone")
	f.StringVar(&s.cfg.Peer.KeyFile, "p2p-key", "", "file of its key, made if it is not there (default: another peer id at each start)")
	f.StringSliceVar(&s.cfg.Peer.Allow, "p2p-allow", nil, "ids of peers that may ask the agent, whatever the cluster lets them do, separated by commas (default: none)")
	f.StringSliceVar(&s.relays, "p2p-relay", nil, "multiaddresses of relays, with /p2p/ID, separated by commas (default: the edges)")
	f.BoolVar(&s.cfg.Handoff.RawStringBody, "handoff.raw-string-body", false, "send input_data of handoffs that is a string as its text, text/plain, and not as JSON")
	f.BoolVar(&s.cfg.Handoff.Slashes, "handoff.slashes", false, "let values of parameters of a path have slashes, sent as %2F: only for a server that takes a path apart before it undoes escapes, as Go's does")
	f.StringVar(&s.cfg.Deliver, "deliver", "", "path of the agent to which messages and events are posted (default: messages are refused)")
	f.StringVar(&s.admin, "admin-addr", "", "address of the API by which the agent sends messages and joins spaces; on loopback where it names no host (default: none)")
	f.StringVar(&s.cfg.Token, "admin.token-file", "", "file of the token that this API asks for, read at each request (default: whoever reaches it speaks as the agent)")
	f.StringVar(&s.level, "log.level", "info", "debug, info, warn or error")
	f.StringVar(&s.format, config.FormatFlag, "", "text, json or short (default: short at a terminal, else text)")
	return cmd
}

// sidecarVerb is the verb sidecar.
type sidecarVerb struct {
	verb
	cfg           sidecar.Config
	relays        []string
	admin         string
	level, format string
}

func (s *sidecarVerb) run(cmd *cobra.Command, _ []string) error {
	side, err := s.open(cmd)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	return exit.Failed(cmd, s.advised(side.Run(cmd.Context()), true))
}

// open returns the sidecar that the flags are of.
func (s *sidecarVerb) open(cmd *cobra.Command) (*sidecar.Sidecar, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	s.cfg.Client, s.cfg.Peer.Relays = cfg, s.relays
	if s.cfg.Log, err = s.log(cmd); err != nil {
		return nil, err
	}
	side, err := sidecar.New(s.cfg)
	if err != nil || s.admin == "" {
		return side, err
	}
	if s.cfg.Admin, err = net.Listen("tcp", onLoopback(s.admin)); err != nil {
		return nil, err
	}
	return sidecar.New(s.cfg)
}

func (s *sidecarVerb) log(cmd *cobra.Command) (*slog.Logger, error) {
	return logOf(cmd, s.level, s.format)
}

// logOf returns the log of a verb that runs on, to stderr; without a format that is short at a terminal, and else text.
func logOf(cmd *cobra.Command, level, format string) (*slog.Logger, error) {
	switch {
	case format != "":
	case terminal.Is(cmd.ErrOrStderr()):
		format = logging.Short
	default:
		format = logging.Text
	}
	return logging.Open(cmd.ErrOrStderr(), format, level)
}

// onLoopback returns an address that is of this machine alone where it names no host.
func onLoopback(address string) string {
	if strings.HasPrefix(address, ":") {
		return "127.0.0.1" + address
	}
	return address
}
