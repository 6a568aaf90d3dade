package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// assembled returns the folder of a release whose programs are the one of this test.
func assembled(t *testing.T) string {
	t.Helper()
	targets, err := parseTargets(allTargets)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &release{root: "..", out: t.TempDir(), version: "v1.2.3", revision: "abc", time: time.Unix(1e9, 0).UTC(), targets: targets, log: io.Discard}
	programs := map[target]string{}
	for _, at := range targets {
		programs[at] = self
	}
	if err := errors.Join(r.assemble(programs, []entry{{name: "completions/agora.bash", mode: 0o644, content: []byte("complete")}}), checksums(r.out)); err != nil {
		t.Fatal(err)
	}
	return r.out
}

// TestAReleaseIsWhole assembles a release twice, as packing programs takes its time, and looks at it from all sides.
func TestAReleaseIsWhole(t *testing.T) {
	first, second := assembled(t), assembled(t)
	t.Run("the same each time", func(t *testing.T) { compareReleases(t, first, second) })
	t.Run("checksums", func(t *testing.T) { checkSums(t, first) })
	t.Run("archives", func(t *testing.T) { checkArchives(t, first) })
	t.Run("SBOM", func(t *testing.T) { checkSBOM(t, first) })
	t.Run("image", func(t *testing.T) { checkIndex(t, first) })
}

func compareReleases(t *testing.T, first, second string) {
	files, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 6+6+1+1 { // archives, SBOMs, the image, checksums
		t.Errorf("there are %d files: %v", len(files), files)
	}
	for _, f := range files {
		if !bytes.Equal(content(t, first, f.Name()), content(t, second, f.Name())) {
			t.Errorf("%s differs from build to build", f.Name())
		}
	}
}

func content(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkSums holds that the checksums are of all files.
func checkSums(t *testing.T, out string) {
	sums := string(content(t, out, "SHA256SUMS"))
	files, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content(t, out, f.Name())), f.Name())
		if f.Name() != "SHA256SUMS" && !strings.Contains(sums, line) {
			t.Errorf("SHA256SUMS has no line %q", line)
		}
	}
}

// checkArchives holds that archives have the program, and what goes with it.
func checkArchives(t *testing.T, out string) {
	for archive, program := range map[string]string{"linux-amd64.tar.gz": "agora", "darwin-arm64.tar.gz": "agora", "windows-amd64.zip": "agora.exe"} {
		found := map[string]os.FileMode{}
		raw := content(t, out, "agora-v1.2.3-"+archive)
		if strings.HasSuffix(archive, ".zip") {
			z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range z.File {
				found[f.Name] = f.Mode()
			}
		} else {
			packed, err := gzip.NewReader(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			for h := range tarred(t, packed) {
				found[h.Name] = h.FileInfo().Mode()
			}
		}
		platform, _, _ := strings.Cut(archive, ".")
		for name, mode := range map[string]os.FileMode{program: 0o755, "LICENSE": 0o644, "README.md": 0o644, "completions/agora.bash": 0o644} {
			if got := found["agora-v1.2.3-"+platform+"/"+name]; got != mode {
				t.Errorf("%s: %s has mode %v, want %v: %v", archive, name, got, mode, found)
			}
		}
	}
}

// tarred returns what a tar archive has.
func tarred(t *testing.T, r io.Reader) func(yield func(*tar.Header, []byte) bool) {
	return func(yield func(*tar.Header, []byte) bool) {
		for in := tar.NewReader(r); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(h, b) {
				return
			}
		}
	}
}

// checkSBOM holds that the SBOM names what is linked in.
func checkSBOM(t *testing.T, out string) {
	var b cyclonedx.BOM
	raw := content(t, out, "agora-v1.2.3-linux-amd64.cdx.json")
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(raw), cyclonedx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	if c := b.Metadata.Component; c.Name != "agora" || c.Version != "v1.2.3" || len(*c.Hashes) != 1 {
		t.Errorf("it is of %+v", c)
	}
	for _, name := range []string{"std", "github.com/google/go-containerregistry"} { // of this test
		if !slices.ContainsFunc(*b.Components, func(c cyclonedx.Component) bool { return c.Name == name && c.Version != "" && c.PackageURL != "" }) {
			t.Errorf("it does not name %s, which is linked in", name)
		}
	}
	if deps := *(*b.Dependencies)[0].Dependencies; len(deps) != len(*b.Components) {
		t.Errorf("the program depends on %d of %d components", len(deps), len(*b.Components))
	}
}

// checkIndex holds that the image is of every Linux.
func checkIndex(t *testing.T, out string) {
	dir := t.TempDir()
	for h, b := range tarred(t, bytes.NewReader(content(t, out, "agora-v1.2.3-image.tar"))) {
		path := filepath.Join(dir, h.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := manifest(t, top)
	if len(m.Manifests) != 1 || m.Manifests[0].MediaType != types.OCIImageIndex || m.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("the layout has %+v, want one index that is called 1.2.3", m.Manifests)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range manifest(t, index).Manifests {
		platforms = append(platforms, d.Platform.String())
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, d.Platform)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the image is of %v, want %v", platforms, want)
	}
}

func manifest(t *testing.T, i v1.ImageIndex) *v1.IndexManifest {
	t.Helper()
	m, err := i.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// checkImage holds that an image has what the program needs, and no more.
func checkImage(t *testing.T, image v1.Image, of *v1.Platform) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != of.OS || config.Architecture != of.Architecture || config.Config.User != "65532:65532" || config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("%s: its configuration is %+v", of, config)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for _, l := range layers {
		files, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for h, b := range tarred(t, files) {
			modes[h.Name] = h.Mode
			if strings.HasSuffix(h.Name, ".crt") && !x509.NewCertPool().AppendCertsFromPEM(b) {
				t.Errorf("%s has no certificate", h.Name)
			}
			if h.Name == "data/" && h.Uid != unprivileged {
				t.Errorf("/data is of user %d", h.Uid)
			}
		}
	}
	for name, mode := range map[string]int64{"usr/bin/agora": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644, "data/": 0o700, "tmp/": 0o1777} {
		if modes[name] != mode {
			t.Errorf("%s: %s has mode %o, want %o", of, name, modes[name], mode)
		}
	}
}

// TestTheImageIsThatOfTheDockerfile holds that both ways to build the image make the same program, which runs in the
// same way.
func TestTheImageIsThatOfTheDockerfile(t *testing.T) {
	file := string(content(t, "../deploy/Dockerfile"))
	flags := slices.Clone(buildFlags("${VERSION}"))
	for k, f := range flags {
		if name, value, is := strings.Cut(f, "=-s"); is {
			flags[k] = name + `="-s` + value + `"`
		}
	}
	if line := "RUN go build " + strings.Join(flags, " ") + " -o "; !strings.Contains(file, line) {
		t.Errorf("deploy/Dockerfile has no %s", line)
	}
	c, h := imageConfig(nil), imageConfig(nil).Healthcheck
	var ports []string
	for p := range c.ExposedPorts {
		ports = append(ports, regexp.QuoteMeta(strings.TrimSuffix(p, "/tcp")))
	}
	list := func(words []string) string { return `\["` + strings.Join(words, `", "`) + `"\]` }
	for _, line := range []string{
		"USER " + c.User, "ENV " + c.Env[0], "ENTRYPOINT " + list(c.Entrypoint), "CMD " + list(c.Cmd), "EXPOSE( (" + strings.Join(ports, "|") + ")){3}",
		fmt.Sprintf("HEALTHCHECK --interval=%gs --timeout=%gs --start-period=%gs --retries=%d CMD %s",
			h.Interval.Seconds(), h.Timeout.Seconds(), h.StartPeriod.Seconds(), h.Retries, list(h.Test[1:])),
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(file) {
			t.Errorf("deploy/Dockerfile has no line %s", line)
		}
	}
}

func TestWhatIsNoReleaseIsRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"want one such as v1.2.3": {"-version", "1.2.3", "-out", t.TempDir()},
		"-out is missing":         {"-version", "v1.2.3"},
		"is not empty":            {"-version", "v1.2.3", "-out", full},
		"want different ones":     {"-version", "v1.2.3", "-out", t.TempDir(), "-targets", "linux/amd64,plan9/amd64"},
		"none is of Linux":        {"-version", "v1.2.3", "-out", t.TempDir(), "-targets", "darwin/arm64"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("release %v: %v, want %q", args, err, want)
		}
	}
}
