package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agora-relay/agora"
)

const whole = `{"method":"POST","path":"/a","params":{"x":"}\"]"},"input_data":[1,{"a":"\\"}]}`

// open is a stream whose writer never closes it: a read behind what it has ends the test.
type open struct {
	t    *testing.T
	rest string
	step int // bytes of each read
}

func (o *open) Read(p []byte) (int, error) {
	if o.rest == "" {
		o.t.Fatal("it reads on, and would wait for ever")
	}
	n := copy(p[:min(len(p), o.step)], o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func TestARequestIsReadHoweverItIsWritten(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"bytewise, and left open": &open{t, whole, 1},
		"by threes":               &open{t, whole, 3},
		"fifty at once":           &open{t, whole, 50},
		"at once":                 &open{t, whole, 1 << 20},
		"bytewise, and closed":    iotest.OneByteReader(strings.NewReader(whole)),
		"closed with the last":    iotest.DataErrReader(strings.NewReader(whole)),
		"with a line break":       &open{t, "\n" + whole + "\n", 1 << 20},
		"and lost behind it":      io.MultiReader(strings.NewReader(whole), iotest.ErrReader(os.ErrDeadlineExceeded)),
	} {
		got, err := Read(r, 0)
		if err != nil || string(got.Append(nil)) != whole {
			t.Errorf("%s: %s, %v", name, got.Append(nil), err)
		}
	}
}

func TestWhatCannotBecomeARequestIsNotWaitedFor(t *testing.T) {
	for _, s := range []string{`12`, `"x"`, `[`, `tr`, ` x`, `{]`, `{"a":}`, `{"a":1,}`, `{1`, `{"a" 1`, `{"a":01`, `{"a":"` + "\n", strings.Repeat(`{"a":`, 10002)} {
		_, err := Read(&open{t, s, 1}, 0)
		if f, ok := err.(*Fault); !ok || f.Code != http.StatusBadRequest {
			t.Errorf("%.20s: %v, want 400", s, err)
		}
	}
}

func TestARequestIsBounded(t *testing.T) {
	for _, c := range []struct {
		stream string
		max    int
		want   int
	}{
		{whole, len(whole), 0},
		{whole + strings.Repeat("x", 100), len(whole), 0},
		{" " + whole, len(whole), 413},
		{whole, len(whole) - 1, 413},
		{strings.Repeat(" ", 100), 50, 413},
		{strings.Repeat(" ", 100), 100, 413},
		{whole[:10], 10, 413},
	} {
		for _, step := range []int{1, 50, 1 << 20} {
			_, err := Read(&open{t, c.stream, step}, c.max)
			if f := FaultOf(err); (f == nil) != (c.want == 0) || f != nil && f.Code != c.want {
				t.Errorf("%q by %d, at most %d: %v, want %d", c.stream, step, c.max, err, c.want)
			}
		}
	}
	large := `{"method":"PUT","path":"/a","input_data":"` + strings.Repeat("x", MaxRequest) + `"}`
	if _, err := Read(strings.NewReader(large), 0); FaultOf(err).Code != http.StatusRequestEntityTooLarge {
		t.Errorf("16 MiB and more: %v", err)
	}
}

func TestAReadersErrorIsTold(t *testing.T) {
	timeout := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	reset := errors.New("stream reset")
	for _, c := range []struct {
		err  error
		want int
		code agora.Code
	}{
		{timeout, 408, agora.Timeout},
		{os.ErrDeadlineExceeded, 408, agora.Timeout},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 408, agora.Timeout},
		{iotest.ErrTimeout, 400, agora.InvalidRequest}, // it does not say that it is one
		{reset, 400, agora.InvalidRequest},
		{io.ErrUnexpectedEOF, 400, agora.InvalidRequest},
	} {
		for _, came := range []string{"", " ", whole[:1], whole[:20]} {
			_, err := Read(io.MultiReader(strings.NewReader(came), iotest.ErrReader(c.err)), 0)
			f, ok := err.(*Fault)
			if !ok || f.Code != c.want || agora.AsError(err).Code != c.code || !errors.Is(err, c.err) {
				t.Errorf("%v behind %q: %v, want %d", c.err, came, err, c.want)
			}
			if told := string(AppendFault(nil, err)); strings.Contains(told, "reset") {
				t.Errorf("the cause is told: %s", told)
			}
		}
	}
	if _, err := Read(idle{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that reads nothing: %v", err)
	}
}

// idle reads nothing, and says nothing of it.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// TestReadingIsLinear reads a long request byte by byte: with a scan of all that has come at each byte it would go on for days.
func TestReadingIsLinear(t *testing.T) {
	long := `{"method":"PUT","path":"/a","input_data":[` + strings.Repeat(`{"a":"b"},`, 1<<18) + `0]}`
	r, err := Read(iotest.OneByteReader(strings.NewReader(long)), 0)
	must(t, err)
	if len(r.Input) < len(long)-100 {
		t.Errorf("input_data has %d bytes of %d", len(r.Input), len(long))
	}
}
