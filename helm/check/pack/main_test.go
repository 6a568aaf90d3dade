package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

const chartDir = "../../agora"

func TestAPackedChartIsOfTheRelease(t *testing.T) {
	path, err := pack(chartDir, t.TempDir(), "1.2.3", time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := packed.Metadata; m.Version != "1.2.3" || m.AppVersion != "1.2.3" {
		t.Errorf("the package is of version %s, for %s; want 1.2.3 of both", m.Version, m.AppVersion)
	}
	source, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed.Templates) != len(source.Templates) || len(packed.Files) != len(source.Files) || packed.Schema == nil {
		t.Errorf("the package has %d templates, %d files, and a schema of %d bytes; the chart has %d and %d", len(packed.Templates), len(packed.Files), len(packed.Schema),
			len(source.Templates), len(source.Files))
	}
}

func TestAChartIsPackedToTheSameBytes(t *testing.T) {
	again := t.TempDir()
	if err := os.CopyFS(again, os.DirFS(chartDir)); err != nil { // checked out at another time
		t.Fatal(err)
	}
	var packed [2][]byte
	for k, dir := range []string{chartDir, again} {
		path, err := pack(dir, t.TempDir(), "1.2.3", time.Unix(1e9, 0))
		if err != nil {
			t.Fatal(err)
		}
		if packed[k], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("two packages of the same chart differ")
	}
}

func TestAVersionThatIsNoneIsRefused(t *testing.T) {
	if path, err := pack(chartDir, t.TempDir(), "next", time.Unix(1e9, 0)); err == nil {
		t.Errorf("a chart of version next was packed as %s", path)
	}
}
