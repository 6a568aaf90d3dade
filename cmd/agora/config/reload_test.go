package config

import (
	"strings"
	"testing"
)

func TestReloadableSettingsAreSettings(t *testing.T) {
	known := strings.Join(SettingNames(EdgeFlags()), "\n") + "\n"
	for _, name := range reloadable {
		if !strings.Contains(known, name+"\n") {
			t.Errorf("%s is no setting", name)
		}
	}
}
