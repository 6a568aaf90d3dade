package check

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// deployed returns a file of deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

func TestTheValuesOfNATSGiveEdgesTheirPermissions(t *testing.T) {
	var values struct {
		Config struct {
			Merge struct {
				MaxPayload string `json:"max_payload"`
				Accounts   map[string]struct {
					Users []struct {
						User        string
						Permissions map[string]struct{ Allow []string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "kubernetes/nats.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	edge := values.Config.Merge.Accounts["AGORA"].Users[0]
	publish, subscribe, both := strings.Cut(deployed(t, "nats/edge-permissions.conf"), "subscribe:")
	if !both || edge.User != "edge" || values.Config.Merge.MaxPayload != "<< 8MB >>" {
		t.Errorf("there is %+v", values.Config.Merge)
	}
	for verb, text := range map[string]string{"publish": publish, "subscribe": subscribe} {
		var want []string
		for _, subject := range quoted.FindAllStringSubmatch(text, -1) {
			want = append(want, subject[1])
		}
		if got := edge.Permissions[verb].Allow; len(want) < 4 || !slices.Equal(got, want) {
			t.Errorf("it may %s %v, want %v", verb, got, want)
		}
	}
}

func TestTheValuesOfRedisGiveEdgesTheirRights(t *testing.T) {
	var values struct {
		Redis struct{ Config map[string]any }
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "kubernetes/redis.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	c := values.Redis.Config
	user, _ := c["user"].(string)
	want := strings.Fields(deployed(t, "redis/edge.acl"))
	if got := strings.Fields(user); len(got) < 4 || !slices.Equal(got[3:], want) || got[0] != "edge" {
		t.Errorf("the user is %v, want %v", got, want)
	}
	if c["appendonly"] != "yes" || c["maxmemory-policy"] != "noeviction" {
		t.Errorf("it does not keep what it is given: %v", c)
	}
}

var secretRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `[^`]+` \\| secret \\|")

// Settings stand in annotations, which who may read pods may read.
func TestNoSecretStandsAmongTheSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := secretRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Errorf("the secrets are %v", rows)
	}
	for _, row := range rows {
		if _, err := render(minimal + "config: {" + row[1] + ": x}"); err == nil || !strings.Contains(err.Error(), "is a secret") {
			t.Errorf("%s is taken: %v", row[1], err)
		}
	}
}

func TestTheValuesOnNATSAndRedisOfOnesOwnMakeAnEdge(t *testing.T) {
	text := deployed(t, "kubernetes/agora.yaml")
	if fault := run(t, program(t), settings(t, text), "config", "show"); fault != "" {
		t.Error(fault)
	}
	rendered(t, text)
}
