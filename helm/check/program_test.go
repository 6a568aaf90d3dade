package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
)

// folder has what the tests build; TestMain removes it.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "agora-chart"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// build builds agora, once for all tests.
var build = sync.OnceValues(func() (string, error) {
	agora := filepath.Join(folder, "agora")
	cmd := exec.Command("go", "build", "-o", agora, "./cmd/agora")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return agora, nil
})

// program returns the path of agora.
func program(t *testing.T) string {
	t.Helper()
	agora, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return agora
}

// settings returns the file of settings that edges have by these values.
func settings(t *testing.T, values string) string {
	t.Helper()
	return settingsOf(t, edges(t, rendered(t, values)).Template)
}

// settingsOf returns the file of settings that the containers of a pod are given.
func settingsOf(t *testing.T, pod core.PodTemplateSpec) string {
	t.Helper()
	volume := slices.IndexFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == "config" && v.DownwardAPI != nil })
	if volume < 0 {
		t.Fatalf("the settings are not the pod's own: %+v", pod.Spec.Volumes)
	}
	item := pod.Spec.Volumes[volume].DownwardAPI.Items[0]
	if item.Path != "agora.yaml" || item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.annotations['agora/settings']" {
		t.Fatalf("the file of settings is %+v", item)
	}
	return pod.Annotations["agora/settings"]
}

// write writes a file, and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs agora with that file of settings, and says what it prints to its error output; empty if it is content.
func run(t *testing.T, agora, text string, args ...string) string {
	t.Helper()
	var errs strings.Builder
	cmd := exec.Command(agora, args...)
	cmd.Env, cmd.Stderr = []string{"AGORA_CONFIG=" + write(t, text)}, &errs
	if err := cmd.Run(); err != nil {
		return err.Error() + ": " + errs.String()
	}
	return ""
}

// The settings are the program's own: it reads the file that the chart writes.
func TestTheProgramKnowsEverySettingThatTheChartWrites(t *testing.T) {
	agora := program(t)
	for name, values := range files(t) {
		config := settings(t, values)
		if fault := run(t, agora, config, "config", "show"); fault != "" {
			t.Errorf("%s: %s\n%s", name, fault, config)
		}
		if fault := run(t, agora, config+"\nmailbox.max-agee: 1m\n", "config", "show"); fault == "" {
			t.Errorf("%s: a setting that does not exist is taken", name)
		}
	}
}

// The container that comes before an edge runs this.
func TestTheCheckBeforeAnEdgeFindsFaults(t *testing.T) {
	agora, trial := program(t), files(t)["trial.yaml"]
	pod, _ := edgePod(t, trial)
	args := slices.Clone(pod.InitContainers[0].Args)
	for n, arg := range args {
		args[n] = strings.ReplaceAll(arg, "$(POD_NAME)", "t-agora-7d9f4-1") // as Kubernetes does
	}
	for values, want := range map[string]string{
		"":                               "",
		"config: {mailbox.max-agee: 1m}": "mailbox.max-agee",
		"config: {session.grace: soon}":  "session.grace",
		"config: {policy: /etc/agora/policy/no.yaml}": "/etc/agora/policy/no.yaml",
	} {
		got := run(t, agora, settings(t, trial+values), args...)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %v says %q, want %q", values, args, got, want)
		}
	}
}
