package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/exit"
)

// addOperatorCommands adds the verbs of operators to root.
func addOperatorCommands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: operatorGroup, Title: "Looking after a cluster:"})
	for _, cmd := range []*cobra.Command{newWhy(), newKick(), newMailbox(), newInspect(), newRebalance(), newLinks(), newLink(), newUnlink()} {
		cmd.GroupID = operatorGroup
		root.AddCommand(cmd)
	}
}

const operatorGroup = "operator"

// operator is what the commands of operators have in common: they ask the admin port of an edge, whichever it is.
type operator struct {
	admin, tokenFile, tenant string
	access.Trust
	json    bool
	timeout time.Duration
}

// prepare defines the flags of a verb, and has wrong usage told like that of the other verbs.
func (o *operator) prepare(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringVar(&o.admin, "admin", "", "address of the admin port of any edge of the cluster, such as http://HOST:9100; the edge on this machine if empty")
	f.StringVar(&o.tokenFile, "admin.token-file", "", "file of the token that the admin port asks for, where it does")
	o.Trust.Flags(f, "admin ports")
	f.StringVar(&o.tenant, "tenant", agora.DefaultTenant, "tenant of the agent or space")
	f.BoolVar(&o.json, "json", false, "print the whole answer as JSON")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "end after this time")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.WrongUsage(cmd, err) })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return exit.WrongUsage(cmd, check(cmd, args)) }
	}
	warnsReadable(cmd)
	cmd.Long += "\n\n" + operatorHelp + "\n\n" + exit.Help
	return cmd
}

const operatorHelp = `It asks the admin port of an edge, whichever edge of the cluster that is. Without --admin that is the edge on this
machine, in this container or pod, which is found as it is itself set up: by AGORA_ADMIN_ADDR, or the file of
AGORA_CONFIG, else at 127.0.0.1:9100. There no token is needed, unless the edge has admin.token-file.`

// ask sends a request and reads the answer into v; with --json it is printed instead, and v stays as it is.
func (o *operator) ask(cmd *cobra.Command, method, path string, q url.Values, v any) (printed bool, err error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	body, err := o.fetch(ctx, method, path, q)
	if err != nil {
		return false, err
	}
	if o.json {
		_, err := cmd.OutOrStdout().Write(body)
		return true, err
	}
	return false, json.Unmarshal(body, v)
}

// fetch sends a request and returns the answer.
func (o *operator) fetch(ctx context.Context, method, path string, q url.Values) ([]byte, error) {
	q.Set("tenant", o.tenant)
	at, secure, faults, err := o.place()
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(at, "/")+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("--admin: want http://HOST:PORT")
	}
	if o.tokenFile != "" {
		token, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, o.advised(&agora.Error{Code: agora.Unavailable, Message: "no admin port answers at " + at, Cause: errors.Join(err, faults)})
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, answeredError(resp.StatusCode, body)
	}
	return body, nil
}

// advised adds what to do to the error of a port that does not answer, where the verb was not told which one to ask.
func (o *operator) advised(err error) error {
	if o.admin != "" {
		return err
	}
	return exit.Advise(err, "run it where an edge runs, or say which edge to ask by --admin http://HOST:9100")
}

// place returns whom to ask, and how: the edge of --admin, or that on this machine, whose token is found where that
// edge has it. faults are those of what says where the latter is; they matter if nobody answers.
func (o *operator) place() (at string, secure *tls.Config, faults, err error) {
	if o.admin != "" {
		secure, err = o.Trust.Config()
		return o.admin, secure, nil, err
	}
	own := findOwnEdge()
	o.tokenFile = cmp.Or(o.tokenFile, own.TokenFile)
	secure, err = own.secure(&o.Trust)
	return own.url(), secure, own.faults, err
}

// shown is the run of a verb that asks at path about the id that it is given, if any, and shows the answer.
func shown[V any](o *operator, method, path string, show func(w io.Writer, v *V, args []string)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		var v V
		printed, err := o.ask(cmd, method, path, url.Values{"id": args}, &v)
		if err == nil && !printed {
			show(cmd.OutOrStdout(), &v, args)
		}
		return exit.Failed(cmd, err)
	}
}

// answeredError is the error that an admin port answered with.
func answeredError(status int, body []byte) error {
	var v struct {
		Error struct {
			Code    agora.Code `json:"code"`
			Message string     `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &v) != nil || v.Error.Code == "" {
		return fmt.Errorf("HTTP %d: is that the admin port of an edge that has started?", status)
	}
	return &agora.Error{Code: v.Error.Code, Message: v.Error.Message}
}

func newKick() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		Use:   "kick AGENT",
		Short: "End an agent's session",
		Long: "End an agent's session, at whatever edge it is: its connection is closed with code 4010, what it has open is\n" +
			"aborted for its receivers, and it leaves its spaces. Its mailbox stays. It may connect again: who is to be\n" +
			"kept out must lose its credentials first.",
		Args: cobra.ExactArgs(1),
		RunE: shown(&o, http.MethodPost, "/v1/agent/kick", func(w io.Writer, _ *struct{}, args []string) {
			fmt.Fprintf(w, "the session of %s is over\n", args[0])
		}),
	})
}

func newMailbox() *cobra.Command {
	mailbox := &cobra.Command{Use: "mailbox", Short: "Look after an agent's mailbox", Args: cobra.NoArgs}
	var o operator
	type purged struct {
		Unread int `json:"unread_records"`
	}
	mailbox.AddCommand(o.prepare(&cobra.Command{
		Use:   "purge AGENT",
		Short: "Drop what an agent has not read",
		Long: "Drop what an agent has not read of its mailbox. It is told by a gap when it reads next: nothing is missing\n" +
			"in silence. Senders are not told: what they have receipts for was stored.",
		Args: cobra.ExactArgs(1),
		RunE: shown(&o, http.MethodPost, "/v1/agent/purge", func(w io.Writer, v *purged, args []string) {
			if v.Unread == 0 {
				fmt.Fprintf(w, "%s has nothing unread: nothing was dropped\n", args[0])
				return
			}
			fmt.Fprintf(w, "unread records dropped: %d; %s is told when it reads next\n", v.Unread, args[0])
		}),
	}))
	return mailbox
}
