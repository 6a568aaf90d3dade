package presence_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/agora-relay/agora/presence"
)

// A function that a script lacks shows only once it is called.
func TestAScriptHasTheFunctionsThatItCallsAndNoOthers(t *testing.T) {
	files, err := presence.Sources()
	ok(t, err)
	functions := regexp.MustCompile(`(?m)^local function (\w+)\(`).FindAllStringSubmatch(presence.Source("prelude"), -1)
	if len(functions) < 10 {
		t.Fatalf("the prelude has %d functions", len(functions))
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".lua")
		if name == "prelude" {
			continue
		}
		text := presence.Text(name)
		for _, f := range functions {
			calls := len(regexp.MustCompile(`\b`+f[1]+`\(`).FindAllString(text, -1))
			begins := strings.Count(text, "local function "+f[1]+"(")
			if first := strings.Index(text, f[1]+"("); begins > 1 || begins == 0 && calls > 0 || begins == 1 && first != strings.Index(text, "local function "+f[1]+"(")+len("local function ") {
				t.Errorf("%s has %s %d times, and names it %d times", name, f[1], begins, calls)
			}
			if begins == 1 && calls == 1 && f[1] != "int" { // of which others' names are ends
				t.Errorf("%s has %s, and does not call it", name, f[1])
			}
		}
	}
}
