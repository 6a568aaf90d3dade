package iat

import (
	"os"
	"path/filepath"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/workpath"
)

// Workspace is a directory that nothing done through it leaves, by .. or by links: see [os.Root], whose methods it has.
// Names are relative to it.
type Workspace struct {
	*os.Root
	path string
}

// openWorkspace opens the directory that a host has declared, inside of the agent's own where there is one; else that
// one.
func openWorkspace(own, declared string) (*Workspace, error) {
	switch {
	case own == "" && declared == "":
		return nil, agora.Errorf(agora.NotFound, "neither the host nor the agent has declared a workspace")
	case own == "":
		return openRoot(declared)
	case declared == "":
		return openRoot(own)
	}
	rel, err := filepath.Rel(own, declared)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, agora.Errorf(agora.Forbidden, "the host's workspace lies outside of the agent's")
	}
	outer, err := openRoot(own)
	if err != nil {
		return nil, err
	}
	defer outer.Close() // what is opened in it stays open
	inner, err := outer.OpenRoot(rel)
	if err != nil {
		return nil, &agora.Error{Code: agora.Forbidden, Message: "the host's workspace can't be opened inside of the agent's", Cause: err}
	}
	return &Workspace{inner, declared}, nil
}

func openRoot(path string) (*Workspace, error) {
	if !filepath.IsAbs(path) {
		return nil, agora.Errorf(agora.InvalidRequest, "a workspace is an absolute path")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, &agora.Error{Code: agora.NotFound, Message: "the workspace can't be opened", Cause: err}
	}
	return &Workspace{root, path}, nil
}

// Path returns where the workspace is, an absolute path as it was declared.
func (w *Workspace) Path() string { return w.path }

// Local returns a name as it is inside of the workspace, of an absolute path, of one that is relative to it, or of a
// file: URL of one. It looks at the words alone, as edges do, and at no link. FORBIDDEN where it is outside, or would
// be to a reader that takes it in another way: a backslash for the end of a name, white space around it for none.
func (w *Workspace) Local(name string) (string, error) {
	root, err := workpath.ParseRoot(w.path)
	if err == nil {
		err = root.Holds(name)
	}
	if err == nil {
		name, err = workpath.Plain(name)
	}
	if err != nil {
		return "", &agora.Error{Code: agora.Forbidden, Message: "the path leaves the workspace", Cause: err}
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(w.path, name)
		if err != nil {
			rel = ".."
		}
		name = rel
	}
	if name = filepath.Clean(name); !filepath.IsLocal(name) {
		return "", agora.Errorf(agora.Forbidden, "the path leaves the workspace")
	}
	return name, nil
}
