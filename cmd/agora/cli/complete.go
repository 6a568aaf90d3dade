package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/config"
)

// completeTime is how long a shell waits for what could stand there.
const completeTime = 2 * time.Second

// names are those that a shell may be offered.
type names func(context.Context, *client.Client) ([]string, error)

func agentNames(ctx context.Context, c *client.Client) (all []string, err error) {
	agents, err := c.Agents(ctx)
	for _, a := range agents {
		all = append(all, string(a.ID))
	}
	return all, err
}

func spaceNames(ctx context.Context, c *client.Client) (all []string, err error) {
	spaces, err := c.Spaces(ctx)
	for _, s := range spaces {
		all = append(all, s.Name)
	}
	return all, err
}

// completeFlag has shells complete a flag.
func (v *verb) completeFlag(cmd *cobra.Command, flag string, from names) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return v.complete(cmd, from)
	})
	if err != nil {
		panic(err) // there is no such flag
	}
}

// completeArgument has shells complete the first argument, and nothing behind it.
func (v *verb) completeArgument(cmd *cobra.Command, from names) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return v.complete(cmd, from)
	}
}

// completeOperators has shells complete what operators ask about, from where AGORA_URL says that edges are: it is
// agents who may see who is there.
func completeOperators(root *cobra.Command) {
	for path, from := range map[string]names{
		"kick": agentNames, "mailbox purge": agentNames, "inspect agent": agentNames, "inspect space": spaceNames,
	} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil {
			panic(err) // there is no such verb
		}
		var v verb
		asks := &cobra.Command{}
		v.flags(asks, 0)
		v.completeArgument(cmd, from)
		complete := cmd.ValidArgsFunction
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			asks.SetContext(cmd.Context())
			return complete(asks, args, word)
		}
	}
}

// complete asks the cluster for names.
func (v *verb) complete(cmd *cobra.Command, from names) ([]cobra.Completion, cobra.ShellCompDirective) {
	return v.offer(cmd, func(ctx context.Context) ([]string, error) { return v.listed(ctx, from) })
}

// offer offers a shell the names that list returns. Where that fails there are none, and nothing is said: a person
// types.
func (v *verb) offer(cmd *cobra.Command, list func(context.Context) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	if _, err := config.Fill(cmd.Flags(), os.LookupEnv); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := list(ctx)
	var safe []cobra.Completion
	for _, name := range all {
		if !strings.ContainsFunc(name, unsafeInShell) {
			safe = append(safe, name)
		}
	}
	return safe, cobra.ShellCompDirectiveNoFileComp
}

func (v *verb) listed(ctx context.Context, from names) ([]string, error) {
	cfg, err := v.config()
	if err != nil {
		return nil, err
	}
	cfg.Agent = "" // nobody may ask
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return from(ctx, c)
}

// unsafeInShell reports whether a shell could take a character of a name, which others have chosen, for more than that.
func unsafeInShell(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_./@+", r)
}
