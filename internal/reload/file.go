// Package reload keeps what stands in files as it is now: settings and secrets
// that others replace while the process runs.
package reload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// maxSize is more than any file of settings has.
const maxSize = 16 << 20

// Every is how often [Watch] looks. It reads the files instead of waiting for
// the system's word: that misses files behind links and on network mounts,
// which is how orchestrators replace them.
const Every = time.Second

// Source is what [Watch] looks after.
type Source interface {
	// Look reads again what has changed, and reports whether anything has. On an
	// error everything stays as it was.
	Look() (changed bool, err error)
	// Name says what it is, for the log.
	Name() string
}

// File is the content of one file, made into something. Its methods may be
// called by many at a time.
type File[T any] struct {
	path string
	make func([]byte) (T, error)
	now  atomic.Pointer[T]

	mu  sync.Mutex // guards the field below
	sum [sha256.Size]byte
}

// Open reads the file and makes something of it. The error, of reading or of
// made, names the path.
func Open[T any](path string, made func([]byte) (T, error)) (*File[T], error) {
	f := &File[T]{path: path, make: made}
	if _, err := f.Look(); err != nil {
		return nil, err
	}
	return f, nil
}

// Get returns what was made of the file last. It is shared.
func (f *File[T]) Get() T { return *f.now.Load() }

// Name returns the path.
func (f *File[T]) Name() string { return f.path }

// Look reads the file; what has changed is made again.
func (f *File[T]) Look() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := read(f.path)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(b)
	if f.now.Load() != nil && sum == f.sum {
		return false, nil
	}
	made, err := f.make(b)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	f.sum = sum
	f.now.Store(&made)
	return true, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, whoNeeds(err)
	}
	defer file.Close()
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(file, maxSize+1))
	if err == nil && n > maxSize {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxSize)
	}
	return b.Bytes(), err
}

// whoNeeds adds to an error of permission whose it must be: in a container that is seldom who made the file.
func whoNeeds(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: user %d (group %d), as whom this process runs, must be able to read it", err, os.Geteuid(), os.Getegid())
}

// Watch looks after sources until ctx is over, and calls changed, on its own
// goroutine, after each of them that has. What can't be taken is logged once as
// long as it fails in the same way.
func Watch(ctx context.Context, log *slog.Logger, changed func(Source), sources ...Source) {
	t := time.NewTicker(Every)
	defer t.Stop()
	failed := make([]string, len(sources))
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for i, s := range sources {
			now, err := s.Look()
			switch {
			case err != nil && err.Error() != failed[i]:
				failed[i] = err.Error()
				log.Error("a changed file is not taken: what it said before stays in force", "err", err)
			case err == nil && (now || failed[i] != ""):
				failed[i] = ""
				log.Info("a changed file is in force", "file", s.Name())
			}
			if now {
				changed(s)
			}
		}
	}
}
