package p2phost

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
)

// NewKey makes a key.
func NewKey() (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	return key, err
}

// KeyIn returns the key that a file holds, as libp2p writes keys down. A file that is not there is made, with a new
// key, for its owner's eyes alone.
func KeyIn(path string) (crypto.PrivKey, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s holds no key of libp2p: %w", path, err)
	}
	return key, nil
}

// makeKey makes the file whole, or not at all. Where another process has made it meanwhile, its key is the one.
func makeKey(path string) (crypto.PrivKey, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	b, err := crypto.MarshalPrivateKey(key)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // with mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return KeyIn(path)
	} else if err != nil {
		return nil, err
	}
	return key, nil
}
