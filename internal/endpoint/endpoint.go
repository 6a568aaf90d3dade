// Package endpoint names the port of a machine that an address reaches: two addresses that share a name reach the same
// one, however they are written; and tells a port that is taken.
package endpoint

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Machine is where a process runs, as far as its network reaches: a machine, or a container with a network of its own.
// It knows which addresses are the machine's own.
type Machine struct {
	ID   string              // tells the machine from others
	Addr func() []netip.Addr // its addresses now, besides those of loopback
}

// This returns the machine of this process.
func This() Machine { return Machine{ID: machineID(), Addr: addresses} }

// Names returns the names of a port of addresses, in order. An address has one name, whatever carries IPv4 within IPv6
// and whatever zone it has, and one more for each address of IPv4 that a gateway or a tunnel may carry it to. All
// addresses of loopback are one, as is the unspecified one, and the machine's own addresses have the name of the
// machine besides, as loopback has.
func (m Machine) Names(all []netip.Addr, port uint16) []string {
	suffix := ":" + strconv.Itoa(int(port))
	var names []string
	here := m.Addr()
	for _, ip := range all {
		ip = ip.Unmap().WithZone("")
		for _, a := range append(Embedded(ip), ip) {
			name, own := a.Unmap().String(), false
			if a.IsLoopback() || a.IsUnspecified() {
				name, own = "loopback", true
			}
			names = append(names, name+suffix)
			if own || slices.Contains(here, a) {
				names = append(names, "@"+m.ID+suffix)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addresses returns the addresses of this machine's interfaces.
func addresses() (all []netip.Addr) {
	has, err := net.InterfaceAddrs()
	if err != nil {
		return nil // the machine is known by loopback alone
	}
	for _, a := range has {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
			all = append(all, p.Addr().Unmap().WithZone(""))
		}
	}
	return all
}

// machineID identifies the network of this process: by the boot of the machine and the namespace in it, or else by the
// machine's name.
func machineID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/net")
	host, _ := os.Hostname()
	id := strings.TrimSpace(string(boot)) + space
	return cmp.Or(id, host, "here")
}
