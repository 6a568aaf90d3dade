package config

import (
	"os"
	"strings"
	"testing"
)

func TestTheReferenceOfSettingsIsWhatTheCodeSays(t *testing.T) {
	var now strings.Builder
	if err := reference(&now); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	if now.String() != string(page) {
		t.Error("docs/settings.md is not what the code says: go run ./cmd/agora config reference > docs/settings.md")
	}
}

func TestTheReferenceNamesEverySettingOnceAndNoSecretsValue(t *testing.T) {
	t.Setenv("AGORA_NATS_TOKEN", "s3cret")
	var page strings.Builder
	if err := reference(&page); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(SettingNames(EdgeFlags()), SettingNames(devFlags())...) {
		if n := strings.Count(page.String(), "| `"+name+"` |"); n != 1 {
			t.Errorf("%s stands there %d times, want once", name, n)
		}
	}
	if strings.Contains(page.String(), "s3cret") {
		t.Error("a secret is shown")
	}
}
