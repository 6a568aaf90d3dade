package aip

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// seedNames are the methods and attributes of the classes in AIP's document.
var seedNames = map[string]string{
	"Gateway": "address gateway_id start stop connect_to_gateway get_registered_nodes get_registered_agents get_registered_tools",
	"Agent": "address agent_id name domain description version input_mode output_mode skills agent_info _create_agent_info start stop register_to_gateway update_peers get_nodes " +
		"create_task_info create_content_items create_agent_message create_agent_client submit_inquiry receive_feedback close_agent_client submit_feedback receive_inquiry " +
		"invoke_session_handlers create_tool_client call_tool close_tool_client",
	"Tool": "address tool_id name domain description version input_mode output_mode arguments tool_info start stop register_to_gateway add_tool tool",
}

// types are those whose methods and fields the table names, and functions the others.
var types = map[string]reflect.Type{
	"Gateway": reflect.TypeFor[*Gateway](), "Agent": reflect.TypeFor[*Agent](), "Toolbox": reflect.TypeFor[*Toolbox](), "Call": reflect.TypeFor[*Call](), "Session": reflect.TypeFor[*Session](),
	"ToolClient": reflect.TypeFor[*ToolClient](), "Config": reflect.TypeFor[Config](), "Tool": reflect.TypeFor[Tool](),
}

// mapped returns the rows of the table of one class: what stands behind each of its names.
func mapped(t *testing.T, class string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows, within := map[string]string{}, false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimRight(strings.TrimPrefix(line, "//\t"), "\n")
		if !strings.HasPrefix(line, "  ") {
			within = regexp.MustCompile("^" + class + `\b`).MatchString(line)
			continue
		}
		if names, ours, ok := strings.Cut(strings.TrimSpace(line), "   "); ok && within {
			for name := range strings.SplitSeq(names, ", ") {
				rows[name] = strings.TrimSpace(ours)
			}
		}
	}
	return rows
}

func TestEveryNameOfTheProtocolHasOneHere(t *testing.T) {
	t.Parallel()
	for class, names := range seedNames {
		rows := mapped(t, class)
		for name := range strings.FieldsSeq(names) {
			if rows[name] == "" {
				t.Errorf("%s.%s stands in no row of the package documentation", class, name)
			}
			delete(rows, name)
		}
		for name := range rows {
			t.Errorf("%s has no %s", class, name)
		}
	}
}

func TestEveryNameOfTheTableExists(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`\b([A-Z]\w+)\.([A-Z]\w+)`)
	for class := range seedNames {
		for _, ours := range mapped(t, class) {
			for _, n := range name.FindAllStringSubmatch(ours, -1) {
				of := types[n[1]]
				if of == nil {
					t.Fatalf("there is no type %s", n[1])
				}
				_, method := of.MethodByName(n[2])
				field := of.Kind() == reflect.Struct
				if field {
					_, field = of.FieldByName(n[2])
				}
				if !method && !field {
					t.Errorf("there is no %s", n[0])
				}
			}
		}
	}
}
