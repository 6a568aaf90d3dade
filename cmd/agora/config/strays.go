package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// stray is an AGORA_… variable that nothing of this program reads: it was mistyped, and what it says would be missed in
// silence.
type stray struct{ name, nearest string }

// Error says so, and which one may be meant.
func (s *stray) Error() string {
	if s.nearest == "" {
		return s.name + " is no setting, and left alone; `agora config reference` lists them all"
	}
	return s.name + " is no setting: do you mean " + s.nearest + "?"
}

// strays returns those of an environment, in the form of os.Environ, that were meant for a command.
func strays(cmd *cobra.Command, environ []string) (all []*stray) {
	known, own := variables(cmd.Root()), slices.Sorted(maps.Keys(variables(cmd)))
	for _, line := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(line, "=")
		if rest, ours := strings.CutPrefix(name, variablePrefix); ours && !known[name] && !ofOthers(name, value) {
			all = append(all, &stray{name, nearestVariable(rest, own)})
		}
	}
	return all
}

// nearestVariable returns the one that may have been meant by what stands behind the prefix; "" where none is near.
func nearestVariable(rest string, known []string) string {
	for k := range known {
		known[k] = strings.TrimPrefix(known[k], variablePrefix)
	}
	nearest := nearestOf(rest, known)
	if nearest == "" || 2*distance(rest, nearest) > len(nearest)+1 { // of a short name nothing would be left
		return ""
	}
	return variablePrefix + nearest
}

// refuseStrays returns an error for each of them that is nearly the name of a setting, where a command is to run on
// settings: what was meant would not be in force. Others are told alone, as other programs may have variables of that
// kind. To the verbs it only says which one may be meant.
func refuseStrays(cmd *cobra.Command, environ []string) error {
	var errs []error
	format := cmd.Flags().Lookup(FormatFlag)
	for _, s := range strays(cmd, environ) {
		switch {
		case format != nil && s.nearest != "":
			errs = append(errs, s)
		case format != nil && format.Value.String() == "json":
			slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil)).Warn("unknown variable", "err", s)
		case format != nil || s.nearest != "":
			fmt.Fprintf(cmd.ErrOrStderr(), "agora: %v\n", s)
		}
	}
	return errors.Join(errs...)
}

// variables returns those that a command and the commands below it read.
func variables(cmd *cobra.Command) map[string]bool {
	all := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all[Variable(f.Name)] = true })
	delete(all, Variable("help"))
	for _, sub := range cmd.Commands() {
		maps.Copy(all, variables(sub))
	}
	return all
}

// ofOthers reports whether a variable is there for somebody else.
func ofOthers(name, value string) bool {
	return composeOwn[name] || testOwn.MatchString(name) || serviceLink.MatchString(name) || ofService(name, value)
}

// ofService reports whether Kubernetes has put a variable there.
func ofService(name, value string) bool {
	return serviceAddress.MatchString(name) && strings.Contains(value, "://")
}

var (
	// composeOwn are those that docker-compose.yml reads, and no edge.
	composeOwn = map[string]bool{"AGORA_TOKENS": true, "AGORA_NATS_ADMIN_PASSWORD": true, "AGORA_VERSION": true}

	// testOwn are those of tests, and of builds with the tag sabotage.
	testOwn = regexp.MustCompile(`^AGORA_(TEST_.*|BENCH_.*|UPDATE_DOCS|SABOTAGE|SABOTAGE_CLOCK)$`)

	// serviceLink are those that Kubernetes puts into every pod beside a Service whose name begins with "agora", and
	// serviceAddress the one of them that somebody might write by mistake: there it is a URL.
	serviceLink    = regexp.MustCompile(`^AGORA(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	serviceAddress = regexp.MustCompile(`^AGORA(_[A-Z0-9_]+)?_PORT$`)
)
