package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// contexts has what each event of a host that wants JSON is answered with. The others take a hook's text as it is.
var contexts = map[string]func(text string) any{
	"SessionStart":       func(text string) any { return geminiContext("SessionStart", text) },
	"BeforeAgent":        func(text string) any { return geminiContext("BeforeAgent", text) },
	"sessionStart":       func(text string) any { return map[string]any{"additional_context": text} },
	"beforeSubmitPrompt": func(text string) any { return map[string]any{"continue": true, "additional_context": text} },
}

func geminiContext(event, text string) any {
	return map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": event, "additionalContext": text}}
}

// Events returns the events that [Context] knows, sorted: those of Gemini CLI and of Cursor.
func Events() []string { return slices.Sorted(maps.Keys(contexts)) }

// Context returns the JSON, in one line, by which a hook adds text to the context of the model, and nothing for a text
// that is empty but for white space. An event that is none of [Events] is an error.
func Context(event, text string) ([]byte, error) {
	answer := contexts[event]
	if answer == nil {
		return nil, fmt.Errorf("no event is called %q: say one of %s", event, strings.Join(Events(), ", "))
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	b, err := json.Marshal(answer(text))
	return append(b, '\n'), err
}
