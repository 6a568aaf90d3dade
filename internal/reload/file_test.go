package reload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func words(b []byte) (string, error) {
	if strings.Contains(string(b), "bad") {
		return "", errors.New("no good word")
	}
	return string(b), nil
}

func TestWhatIsReplacedIsTakenAndWhatIsNoGoodIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	write(t, path, "one")
	f, err := Open(path, words)
	if err != nil {
		t.Fatal(err)
	}
	look := func(wantChanged, wantErr bool, want string) {
		t.Helper()
		changed, err := f.Look()
		if changed != wantChanged || (err != nil) != wantErr || f.Get() != want {
			t.Errorf("Look = %v, %v and the file is %q, want %v, error %v, %q", changed, err, f.Get(), wantChanged, wantErr, want)
		}
	}
	look(false, false, "one")
	write(t, path, "two")
	look(true, false, "two")
	write(t, path, "bad")
	look(false, true, "two")
	os.Remove(path)
	look(false, true, "two")
	write(t, path+".new", "six")
	if err := os.Symlink(path+".new", path); err != nil { // as orchestrators do
		t.Fatal(err)
	}
	look(true, false, "six")
}

func TestAFileThatIsNotThereIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := Open(path, words); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open = %v, want an error that names %s", err, path)
	}
}

func TestAWatchedFileIsInForceAtTheNextLook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	write(t, path, "one")
	f, err := Open(path, words)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		told := make(chan string, 1)
		var watching sync.WaitGroup
		watching.Go(func() {
			Watch(ctx, slog.New(slog.DiscardHandler), func(Source) { told <- f.Get() }, f)
		})
		begin := time.Now()
		write(t, path, "two")
		if now := <-told; now != "two" || time.Since(begin) != Every {
			t.Errorf("told %q after %v, want %q after %v", now, time.Since(begin), "two", Every)
		}
		stop()
		watching.Wait()
	})
}

func TestAFileThatMayNotBeReadSaysWhoNeedsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	want := fmt.Sprintf("user %d (group %d)", os.Geteuid(), os.Getegid())
	denied := whoNeeds(&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES})
	if !errors.Is(denied, fs.ErrPermission) || !strings.Contains(denied.Error(), want) || !strings.Contains(denied.Error(), path) {
		t.Errorf("it says %v, want %s", denied, want)
	}
	if _, err := Open(path, words); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), want) {
		t.Errorf("a file that is not there: %v", err)
	}
	write(t, path, "one")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, words); os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), want)) { // root may read all
		t.Errorf("it says %v, want %s", err, want)
	}
}
