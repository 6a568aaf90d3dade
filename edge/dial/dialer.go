package dial

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/endpoint"
)

// Config sets up a Dialer. The zero value denies [LinkLocal].
type Config struct {
	Deny    *List         // node.dial-deny: what is not dialled; LinkLocal if nil
	Allow   List          // node.dial-allow: what is dialled though Deny has it
	Timeout time.Duration // of a resolution and the attempts to connect together; 5s

	// Resolve returns the addresses of a host; the system's resolver if nil.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Connect connects to an address that may be dialled; the system does if nil. For tests.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// Dialer connects to addresses that others name, unless they are denied. What is no address of one host (0.0.0.0,
// multicast and the like) is denied whatever the lists say. Its methods may be called at the same time.
type Dialer struct {
	cfg  Config
	here endpoint.Machine
}

// New returns a Dialer.
func New(cfg Config) *Dialer {
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	if cfg.Deny == nil {
		own, err := ParseList(LinkLocal)
		if err != nil {
			panic(err) // they are constants
		}
		cfg.Deny = &own
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if cfg.Connect == nil {
		cfg.Connect = new(net.Dialer).DialContext
	}
	return &Dialer{cfg: cfg, here: endpoint.This()}
}

// Check returns nil while an address HOST:PORT may be dialled now. It resolves the host, and connects to nothing.
// FORBIDDEN where any address of the host is denied, INVALID_REQUEST as of [Canonical], UNAVAILABLE where the host
// can't be resolved in time.
func (d *Dialer) Check(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	_, err := d.resolve(ctx, address)
	return err
}

// Names returns the names of what an address HOST:PORT reaches: two addresses with a name in common reach the same
// port, at least sometimes. It resolves the host; how the host is written is a name as well, and so is what a
// connection to the address has reached, where that is given. Errors are those of Check.
func (d *Dialer) Names(ctx context.Context, address string, reached net.Addr) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	all, err := d.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	names := d.NamesOf(reached)
	for _, at := range all {
		names = append(names, d.here.Names([]netip.Addr{at.Addr()}, at.Port())...)
	}
	host, port, err := split(address)
	if _, literal := netip.ParseAddr(host); err == nil && literal != nil {
		names = append(names, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// NamesOf returns the names of what a connection has reached; none where that is not known.
func (d *Dialer) NamesOf(reached net.Addr) []string {
	if reached == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(reached.String())
	if err != nil {
		return nil
	}
	return d.here.Names([]netip.Addr{at.Addr()}, at.Port())
}

// DialContext connects to HOST:PORT by "tcp", "tcp4" or "tcp6". The host is resolved once; each of its addresses is
// checked, as by Check, and none that was not is dialled. Errors are those of Check, and UNAVAILABLE where nothing
// answers in time.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	all, err := d.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var last error
	for i, to := range all {
		if network == "tcp4" && !to.Addr().Is4() || network == "tcp6" && !to.Addr().Is6() {
			continue
		}
		conn, err := d.connect(ctx, network, to, len(all)-i)
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, unreachable(address, last)
}

// connect connects to one address, within its share of the time that is left.
func (d *Dialer) connect(ctx context.Context, network string, to netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return d.cfg.Connect(ctx, network, to.String())
}

// resolve returns what an address stands for, all of it checked.
func (d *Dialer) resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, port, err := split(address)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	allowed := false
	if ip, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{ip}
	} else {
		allowed = d.cfg.Allow.hasHost(host)
		if !allowed && d.cfg.Deny.hasHost(host) {
			return nil, forbidden(address)
		}
		if found, err = d.cfg.Resolve(ctx, host); err != nil {
			return nil, unreachable(address, err)
		}
	}
	all := make([]netip.AddrPort, 0, len(found))
	for _, ip := range found {
		ip = ip.Unmap()
		if d.denies(ip, allowed) {
			return nil, forbidden(address)
		}
		all = append(all, netip.AddrPortFrom(ip, port))
	}
	if len(all) == 0 {
		return nil, unreachable(address, nil)
	}
	return all, nil
}

// denies reports whether an address may not be dialled; allowed says that its host may.
func (d *Dialer) denies(ip netip.Addr, allowed bool) bool {
	bare := ip.WithZone("") // no network has an address with a zone
	within := endpoint.Embedded(bare)
	for _, a := range append(within, bare) {
		for _, p := range nobody {
			if p.Contains(a) {
				return true
			}
		}
	}
	if allowed || d.cfg.Allow.has(bare) {
		return false
	}
	if d.cfg.Deny.has(bare) {
		return true
	}
	for _, a := range within {
		if d.cfg.Deny.has(a) && !d.cfg.Allow.has(a) {
			return true
		}
	}
	return false
}

func forbidden(address string) error {
	return agora.Errorf(agora.Forbidden, "%q may not be dialled: see node.dial-deny and node.dial-allow", address)
}

func unreachable(address string, why error) error {
	return &agora.Error{Code: agora.Unavailable, Message: "nothing answers at " + address, RetryAfter: time.Second, Cause: why}
}
