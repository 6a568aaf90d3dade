package agenttools

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestNamesOfToolsReadAsTheirAgentAndTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ agent, tool, want string }{
		{"files", "read_file", "files__read_file"},
		{"a", "__", "a____"},
		{"bot", "get_notification", "bot__get_notification"},
		{"Wetter (EU)", "vorher/sage", "Wetter_EU__vorher_sage_"},
		{"天气", "查", "agent__tool_"},
		{"a__b", "c", "a_b__c_"},
		{"a_", "c", "a__c_"},
		{"a", "b_0123456789ab", "a__b_0123456789ab_"},
		{strings.Repeat("a", 100), strings.Repeat("b", 100), strings.Repeat("a", 25) + "__" + strings.Repeat("b", 24) + "_"},
		{"a", strings.Repeat("b", 100), "a__" + strings.Repeat("b", 48) + "_"},
		{strings.Repeat("a", 100), "b", strings.Repeat("a", 48) + "__b_"},
	} {
		got := toolName(c.agent, c.tool)
		if hashed(got) {
			got = got[:len(got)-hashDigits]
		}
		if got != c.want {
			t.Errorf("toolName(%q, %q) = %q without its hash, want %q", c.agent, c.tool, got, c.want)
		}
	}
}

// text draws ids and names, more often than not such as are easily confused.
func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[ab_]{1,6}`), rapid.StringMatching(`[ab/ _-]{1,5}`), rapid.StringN(1, 128, -1),
		rapid.StringMatching(`[a_]{1,3}_[0-9a-f]{12}`), rapid.StringMatching(`[a-z_]{40,80}`))
}

func TestNamesOfToolsAreValidUniqueAndStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		agent, tool, agent2, tool2 := text().Draw(t, "agent"), text().Draw(t, "tool"), text().Draw(t, "agent2"), text().Draw(t, "tool2")
		name := toolName(agent, tool)
		if !validName.MatchString(name) || !strings.Contains(name, separator) {
			t.Fatalf("toolName(%q, %q) = %q", agent, tool, name)
		}
		if again := toolName(agent, tool); again != name {
			t.Fatalf("toolName(%q, %q) = %q, and then %q", agent, tool, name, again)
		}
		if name == toolName(agent2, tool2) && (agent != agent2 || tool != tool2) {
			t.Fatalf("%q names (%q, %q) and (%q, %q)", name, agent, tool, agent2, tool2)
		}
	})
}

func TestNoToolCanTakeTheHashedNameOfAnother(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := toolName(text().Draw(t, "agent"), "odd tool")
		agent, tool, _ := strings.Cut(name, separator)
		if toolName(agent, tool) == name {
			t.Fatalf("(%q, %q) is named %q as well", agent, tool, name)
		}
	})
}
