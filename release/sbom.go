package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom writes what a program consists of, in CycloneDX: the modules that the linker has noted in it, and Go's own
// library. So it is of that program, not of all that go.mod names.
func (r *release) sbom(t target, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	self := cyclonedx.Component{
		BOMRef: "pkg:golang/github.com/agora-relay/agora@" + r.version, Type: cyclonedx.ComponentTypeApplication, Name: "agora", Version: r.version,
		Description: "A relay for AI agents, for " + t.String(), PackageURL: "pkg:golang/github.com/agora-relay/agora@" + r.version,
		Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}
	parts := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		parts = append(parts, moduleComponent(m))
	}
	needs := cyclonedx.Dependency{Ref: self.BOMRef, Dependencies: new([]string)}
	for _, p := range parts {
		*needs.Dependencies = append(*needs.Dependencies, p.BOMRef)
	}
	b := cyclonedx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).URN()
	b.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &self}
	b.Components, b.Dependencies = &parts, &[]cyclonedx.Dependency{needs}
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(b, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return r.write(r.name(t, ".cdx.json"), out.Bytes())
}

// moduleComponent is a module that is linked in: what replaces it, where something does.
func moduleComponent(m *debug.Module) cyclonedx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	return library(m.Path, m.Version)
}

func library(path, version string) cyclonedx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	return cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}
