package config

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newConfigReference() *cobra.Command {
	return &cobra.Command{
		Use:   "reference",
		Short: "Print the reference of all settings, in Markdown",
		Long:  "Print the reference of all settings of `agora edge` and `agora dev`, in Markdown: docs/settings.md is made of it.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reference(cmd.OutOrStdout())
		},
	}
}

const referenceHead = `# Settings

All settings of ` + "`agora edge`" + `, as the code has them: this page is made by ` + "`agora config reference`" + `, and a test fails when it
is not what the code says.

A setting has one name in three spellings, from the strongest to the weakest: the flag ` + "`--session.grace 5s`" + `, the
environment ` + "`AGORA_SESSION_GRACE=5s`" + `, and in the file that ` + "`--config`" + ` or ` + "`AGORA_CONFIG`" + ` names ` + "`session.grace: 5s`" + `, or
` + "`grace: 5s`" + ` below ` + "`session:`" + `. ` + "`agora config check`" + ` tells every fault, ` + "`agora config show`" + ` every value and where it comes from.
A key of the file, or a variable that begins with ` + "`AGORA_`" + `, that is none of these is refused, with the one that may be meant; a variable that is near
to no setting may be another program's, and is told alone. Those that verbs, tests and docker-compose.yml read are left alone, and so are those that Kubernetes makes for a Service called ` + "`agora`" + `.

A **duration** is written like ` + "`1m30s`" + `, a **size** like ` + "`4096`, `16KiB` or `1MiB`" + `, a **list** with commas. Secrets belong into
environment or file, not onto a command line; nothing shows them.
`

// reference writes the page of all settings to w.
func reference(w io.Writer) error {
	edge, dev := EdgeFlags(), devFlags()
	page := referenceHead
	for _, group := range groups(SettingNames(edge)) {
		page += settingsTable(group[0], edge, group[1:])
	}
	alone := slices.DeleteFunc(SettingNames(dev), func(name string) bool { return edge.Lookup(name) != nil })
	page += settingsTable("`agora dev` alone", dev, alone)
	_, err := io.WriteString(w, page)
	return err
}

// groups returns the names in groups, each headed by its title: those before a dot that several names have in common,
// and first those that have none.
func groups(names []string) [][]string {
	all := [][]string{{"The edge"}}
	for _, name := range names {
		prefix, _, dotted := strings.Cut(name, ".")
		at := 0
		if dotted || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+".") }) {
			at = slices.IndexFunc(all, func(g []string) bool { return g[0] == "`"+prefix+"`" })
			if at < 0 {
				all, at = append(all, []string{"`" + prefix + "`"}), len(all)
			}
		}
		all[at] = append(all[at], name)
	}
	return all
}

// settingsTable returns a section with a row for each of names.
func settingsTable(title string, f *pflag.FlagSet, names []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n| setting | environment | kind | default | what it says |\n|---|---|---|---|---|\n", title)
	for _, name := range names {
		s := f.Lookup(name)
		usage := strings.ReplaceAll(s.Usage, "|", `\|`)
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", name, Variable(name), kindOf(s), defaultOf(s), usage)
	}
	return b.String()
}

// kindOf names what values a setting takes.
func kindOf(s *pflag.Flag) string {
	if _, is := s.Value.(*secret); is {
		return "secret"
	}
	switch kind := s.Value.Type(); kind {
	case "int64", "int":
		return "number"
	case "float64":
		return "number, with decimals"
	case "bool":
		return "true or false"
	case "stringSlice", "stringArray":
		return "list"
	case "string":
		return "text"
	default:
		return strings.ReplaceAll(kind, "|", " or ")
	}
}

// defaultOf returns a setting's default as it is written.
func defaultOf(s *pflag.Flag) string {
	if s.DefValue == "" || s.DefValue == "[]" {
		return ""
	}
	return "`" + s.DefValue + "`"
}
