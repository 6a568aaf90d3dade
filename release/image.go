package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// unprivileged is the user that the image runs as, and the owner of /data.
const unprivileged = 65532

// image writes the image of all programs for Linux, as an archive of an OCI layout: what deploy/Dockerfile makes,
// without a daemon. Whom to trust is what Mozilla does, from a module of Go's, as no two machines have the same.
func (r *release) image(programs map[target]string) error {
	base, err := r.layer([]entry{
		{name: "data/", mode: 0o700, owner: unprivileged}, {name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots()}, {name: "tmp/", mode: 0o1777},
	})
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		image, err := r.imageOf(t, programs[t], base)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}}})
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	dir, err := os.MkdirTemp("", "agora-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": strings.TrimPrefix(r.version, "v")})); err != nil {
		return err
	}
	return r.tarOf(dir, "agora-"+r.version+"-image.tar")
}

// imageOf is the image for one platform.
func (r *release) imageOf(t target, program string, base v1.Layer) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	own, err := r.layer([]entry{{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: "usr/bin/agora", mode: 0o755, content: content}})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, base, own); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created, config.Config = t.os, t.arch, v1.Time{Time: r.time}, imageConfig(r.labels())
	for k := range config.History {
		config.History[k] = v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "release"}
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, r.labels()).(v1.Image), nil
}

// imageConfig is how the image runs: as deploy/Dockerfile says, which a test compares.
func imageConfig(labels map[string]string) v1.Config {
	return v1.Config{
		User: "65532:65532", Env: []string{"PATH=/usr/bin"}, Entrypoint: []string{"/usr/bin/agora"}, Cmd: []string{"--help"}, Labels: labels,
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9000/tcp": {}, "50051/tcp": {}},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/usr/bin/agora", "health"}, Interval: 5 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
	}
}

// labels say what an image is.
func (r *release) labels() map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title": "agora", "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": r.version,
		"org.opencontainers.image.source": "https://github.com/agora-relay/agora", "org.opencontainers.image.created": r.time.Format(time.RFC3339),
	}
	if r.revision != "" {
		all["org.opencontainers.image.revision"] = r.revision
	}
	return all
}

// layer is a layer of files.
func (r *release) layer(files []entry) (v1.Layer, error) {
	var out bytes.Buffer
	if err := writeTar(&out, files, r.time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// roots are the certificates of whom to trust, but for those that are trusted with reservations, which a file can't
// say.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return out.Bytes()
}

// tarOf writes a folder as a tar archive of the release.
func (r *release) tarOf(dir, name string) error {
	var files []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // in order of names
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files = append(files, entry{name: filepath.ToSlash(inside), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := writeTar(&out, files, r.time); err != nil {
		return err
	}
	return r.write(name, out.Bytes())
}
