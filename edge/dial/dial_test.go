package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/servers"
)

func list(t *testing.T, entries ...string) *List {
	t.Helper()
	l, err := ParseList(entries)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// names resolves hosts of a test, and counts how often.
type names struct {
	known map[string][]string
	asked int
}

func (n *names) resolve(_ context.Context, host string) (all []netip.Addr, err error) {
	n.asked++
	for _, text := range n.known[host] {
		all = append(all, netip.MustParseAddr(text))
	}
	if len(all) == 0 {
		return nil, errors.New("no such host")
	}
	return all, nil
}

func codeOf(err error) agora.Code {
	if err == nil {
		return ""
	}
	return agora.AsError(err).Code
}

// edgeDeny is what `agora edge` denies if it is not told otherwise.
func edgeDeny(t *testing.T) *List { return list(t, append(slices.Clone(LinkLocal), Inside...)...) }

func TestNoSpellingOfADeniedAddressIsDialled(t *testing.T) {
	t.Parallel()
	hosts := &names{known: map[string][]string{
		"outside": {"192.0.2.1", "2001:db8::1"}, "inside": {"127.0.0.1"}, "both": {"192.0.2.1", "10.1.2.3", "127.0.0.1"}, "mapped": {"::ffff:169.254.169.254"},
	}}
	d := New(Config{Deny: edgeDeny(t), Resolve: hosts.resolve})
	for address, want := range map[string]agora.Code{
		"192.0.2.1:80": "", "[2001:db8::1]:80": "", "outside:80": "", "OUTSIDE.:80": "", "10.0.0.1:65535": "", "[::192.0.2.1]:80": "", "[64:ff9b::192.0.2.1]:80": "",

		"127.0.0.1:80": agora.Forbidden, "127.255.0.9:80": agora.Forbidden, "[::1]:80": agora.Forbidden, "[0:0:0:0:0:0:0:1]:80": agora.Forbidden,
		"[::1%lo]:80": agora.Forbidden, "[fe80::1%eth0]:80": agora.Forbidden, "[fe80::1]:80": agora.Forbidden, "169.254.169.254:80": agora.Forbidden,
		"[::ffff:127.0.0.1]:80": agora.Forbidden, "[::ffff:7f00:1]:80": agora.Forbidden, "[::ffff:127.0.0.1%lo]:80": agora.Forbidden, "[::127.0.0.1]:80": agora.Forbidden,
		"[64:ff9b::127.0.0.1]:80": agora.Forbidden, "[64:ff9b::a9fe:a9fe]:80": agora.Forbidden, "[64:ff9b:1::127.0.0.1]:80": agora.Forbidden,
		"[64:ff9b:1:7f00:0:100::]:80": agora.Forbidden, "[64:ff9b:1:7f:0:1::]:80": agora.Forbidden, "[64:ff9b:1:0:7f:0:100:0]:80": agora.Forbidden,
		"[2002:7f00:1::]:80": agora.Forbidden, "[2002:a9fe:a9fe::1]:80": agora.Forbidden,
		"[2001:0:c000:201:0:0:80ff:fffe]:80": agora.Forbidden, "[2001:0:7f00:1::]:80": agora.Forbidden,
		"[2001:db8::5efe:127.0.0.1]:80": agora.Forbidden, "[2001:db8::200:5efe:127.0.0.1]:80": agora.Forbidden,
		"0.0.0.0:80": agora.Forbidden, "0.1.2.3:80": agora.Forbidden, "[::]:80": agora.Forbidden, "[::ffff:0.0.0.0]:80": agora.Forbidden, "224.0.0.1:80": agora.Forbidden,
		"[ff02::1]:80": agora.Forbidden, "[ff02::1%eth0]:80": agora.Forbidden, "255.255.255.255:80": agora.Forbidden, "[fd00:ec2::254]:80": agora.Forbidden, "100.100.100.200:80": agora.Forbidden,
		"localhost:80": agora.Forbidden, "LocalHost.:80": agora.Forbidden, "a.localhost:80": agora.Forbidden,
		"inside:80": agora.Forbidden, "both:80": agora.Forbidden, "mapped:80": agora.Forbidden,

		"0177.0.0.1:80": agora.InvalidRequest, "127.1:80": agora.InvalidRequest, "2130706433:80": agora.InvalidRequest, "0x7f.1:80": agora.InvalidRequest, "0x7f000001:80": agora.InvalidRequest,
		"127.0.0.01:80": agora.InvalidRequest, "127.0.0.1.:80": agora.InvalidRequest, "a.0x:80": agora.InvalidRequest, "１２７.0.0.1:80": agora.InvalidRequest, "127。0。0。1:80": agora.InvalidRequest,
		"": agora.InvalidRequest, ":80": agora.InvalidRequest, "outside": agora.InvalidRequest, "outside:": agora.InvalidRequest, "outside:0": agora.InvalidRequest, "outside:65536": agora.InvalidRequest,
		"outside:http": agora.InvalidRequest, "outside:+80": agora.InvalidRequest, "user@outside:80": agora.InvalidRequest, "out side:80": agora.InvalidRequest, "a..b:80": agora.InvalidRequest,
		"outside/x:80": agora.InvalidRequest, "::1:80": agora.InvalidRequest, strings.Repeat("a.", 200) + "b:80": agora.InvalidRequest, "outside\x00:80": agora.InvalidRequest,

		"nowhere:80": agora.Unavailable,
	} {
		if got := codeOf(d.Check(t.Context(), address)); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

func TestWhatIsAllowedIsDialledThoughItIsDenied(t *testing.T) {
	t.Parallel()
	hosts := &names{known: map[string][]string{"node.example": {"10.0.0.1"}, "other.example": {"10.0.0.2"}, "bad.test": {"192.0.2.1"}, "a.bad.test": {"192.0.2.1"}}}
	d := New(Config{
		Deny:    list(t, "10.0.0.0/8", "127.0.0.1", "bad.test", "*.bad.test", "::/0"),
		Allow:   *list(t, " 10.0.9.0/24 ", "Node.Example.", "64:ff9b::/96"),
		Resolve: hosts.resolve,
	})
	for address, want := range map[string]agora.Code{
		"10.0.9.7:1": "", "node.example:1": "", "127.0.0.2:1": "", "[64:ff9b::10.0.0.1]:1": "",
		"10.0.8.7:1": agora.Forbidden, "other.example:1": agora.Forbidden, "127.0.0.1:1": agora.Forbidden, "bad.test:1": agora.Forbidden, "a.bad.test:1": agora.Forbidden, "[2001:db8::1]:1": agora.Forbidden,
		"0.0.0.0:1": agora.Forbidden,
	} {
		if got := codeOf(d.Check(t.Context(), address)); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	everything := New(Config{Deny: new(List)})
	for address, want := range map[string]agora.Code{"169.254.0.1:1": "", "[::1]:1": "", "0.0.0.0:1": agora.Forbidden} {
		if got := codeOf(everything.Check(t.Context(), address)); got != want {
			t.Errorf("with an empty list, %q: %q, want %q", address, got, want)
		}
	}
	if got := codeOf(New(Config{}).Check(t.Context(), "169.254.0.1:1")); got != agora.Forbidden {
		t.Errorf("without a list, a link-local address: %q", got)
	}
}

func TestAListNamesWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "10.0.0.0/33", "*", "a*.example", "*.", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.1:80", "http://x", "0177.0.0.1"} {
		if _, err := ParseList([]string{"10.0.0.0/8", entry}); err == nil || !strings.Contains(err.Error(), entry) {
			t.Errorf("%q: %v, want an error that names it", entry, err)
		}
	}
}

// The name is resolved once: what it stands for a moment later is not dialled.
func TestANameIsResolvedOnceAndTheAddressCheckedIsDialled(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	hosts := &names{known: map[string][]string{"node": {"127.0.0.1"}}}
	d := New(Config{Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
		all, err := hosts.resolve(ctx, host)
		hosts.known["node"] = []string{"169.254.1.1"}
		return all, err
	}})
	conn, err := d.DialContext(t.Context(), "tcp", "node:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.RemoteAddr().String(); got != l.Addr().String() || hosts.asked != 1 {
		t.Errorf("connected to %s, after %d resolutions", got, hosts.asked)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "node:"+port); codeOf(err) != agora.Forbidden {
		t.Errorf("dialled again where it stands for another: %v", err)
	}
}

func TestAnAddressThatDoesNotAnswerIsPassedOver(t *testing.T) {
	t.Parallel()
	port := strconv.Itoa(servers.Ports(t, 1)) // where nobody else is once its listener has gone
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	hosts := &names{known: map[string][]string{"node": {"127.0.0.2", "127.0.0.1"}}} // nothing listens at the first
	d := New(Config{Resolve: hosts.resolve, Timeout: time.Minute})
	conn, err := d.DialContext(t.Context(), "tcp", "node:"+port)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	l.Close()
	_, err = d.DialContext(t.Context(), "tcp", "node:"+port)
	if codeOf(err) != agora.Unavailable || strings.Contains(agora.AsError(err).Message, "127.0.0.2") {
		t.Errorf("with nobody there: %v", err)
	}
	if _, err := d.DialContext(t.Context(), "tcp6", "node:"+port); codeOf(err) != agora.Unavailable {
		t.Errorf("without an address of that network: %v", err)
	}
}

func TestAHostThatIsNotResolvedInTimeCantBeReached(t *testing.T) {
	t.Parallel()
	d := New(Config{Timeout: time.Millisecond, Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if _, err := d.DialContext(t.Context(), "tcp", "node:1"); codeOf(err) != agora.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAnAddressHasOneSpelling(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]string{
		"node.example:80":   {"node.example:80", "NODE.example.:80", "Node.Example:0080"},
		"127.0.0.1:80":      {"127.0.0.1:80", "[::ffff:127.0.0.1]:80", "[::ffff:7f00:1]:80"},
		"[2001:db8::1]:443": {"[2001:db8::1]:443", "[2001:DB8:0:0::1]:443"},
	} {
		for _, address := range all {
			if got, err := Canonical(address); got != want || err != nil {
				t.Errorf("%q is %q, %v, want %q", address, got, err, want)
			}
		}
	}
}

// Whatever an address is spelt like, what is dialled was checked.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"node:80", "[::1%lo]:80", "0x7f.1:80", "127.0.0.1:080", "[::ffff:1.2.3.4]:1"} {
		f.Add(s)
	}
	deny := List{networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	d := New(Config{Deny: &deny, Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, io.EOF }})
	f.Fuzz(func(t *testing.T, address string) {
		one, err := Canonical(address)
		if err != nil {
			return
		}
		if again, err := Canonical(one); again != one || err != nil {
			t.Errorf("%q becomes %q, which becomes %q, %v", address, one, again, err)
		}
		all, err := d.resolve(t.Context(), address)
		for _, a := range all {
			if err == nil && a.Addr().WithZone("").IsLoopback() {
				t.Errorf("%q is dialled as %s", address, a)
			}
		}
	})
}
