package endpoint

import "net/netip"

// Embedded returns the addresses of IPv4 that an address of IPv6 may be carried to by a gateway or a tunnel: those of
// NAT64, 6to4, Teredo and ISATAP, and of the old form ::1.2.3.4.
func Embedded(a netip.Addr) (all []netip.Addr) {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case compatible.Contains(a) && b[12] != 0: // else it is ::, ::1 or one like them
		all = append(all, at(12))
	case nat64.Contains(a):
		all = append(all, at(12))
	case nat64Local.Contains(a): // RFC 6052: behind a prefix of 48, 56, 64 or 96 bits, whichever it is there
		for _, i := range [...][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
			if b[i[0]] != 0 { // else it stands elsewhere
				all = append(all, netip.AddrFrom4([4]byte{b[i[0]], b[i[1]], b[i[2]], b[i[3]]}))
			}
		}
	case sixToFour.Contains(a):
		all = append(all, at(2))
	case teredo.Contains(a): // its server, and its client turned over
		all = append(all, at(4), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if b[8]&^3 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		all = append(all, at(12))
	}
	return all
}

var (
	compatible = netip.MustParsePrefix("::/96")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)
