package main

import (
	"strings"
	"testing"
)

func TestReloadableSettingsAreSettings(t *testing.T) {
	known := strings.Join(settingNames(edgeFlags()), "\n") + "\n"
	for _, name := range reloadable {
		if !strings.Contains(known, name+"\n") {
			t.Errorf("%s is no setting", name)
		}
	}
}
