// Package dial makes connections to addresses that others name: it says which may be dialled, and dials no other.
package dial

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// maxHost bounds the name of a host, as DNS does.
const maxHost = 253

// Canonical returns the one spelling of an address HOST:PORT: two that differ name different hosts or ports, though one
// host may have several names. INVALID_REQUEST for what is none: an empty host, a port that is no number from 1 to
// 65535, and hosts that are no name and that some systems read as an address, such as 0177.0.0.1, 127.1 or 2130706433.
func Canonical(address string) (string, error) {
	host, port, err := split(address)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}

// split returns the host of an address, in its one spelling, and its port.
func split(address string) (host string, port uint16, err error) {
	if len(address) > agora.MaxAddress {
		return "", 0, agora.Errorf(agora.InvalidRequest, "an address is longer than %d characters", agora.MaxAddress)
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, agora.Errorf(agora.InvalidRequest, "%q is no address: want HOST:PORT", address)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '+' {
		return "", 0, agora.Errorf(agora.InvalidRequest, "%q has no port from 1 to 65535", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String(), uint16(n), nil
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if fault := inName(host); fault != "" {
		return "", 0, agora.Errorf(agora.InvalidRequest, "%q %s", address, fault)
	}
	return host, uint16(n), nil
}

// inName says what is wrong with the name of a host; empty for nothing.
func inName(host string) string {
	if host == "" {
		return "names no host"
	}
	if len(host) > maxHost {
		return "has a host that is too long"
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInLabel) {
			return "has a host that is no name: want letters, digits, dashes and dots"
		}
	}
	if isNumber(labels[len(labels)-1]) {
		return "has a host that is neither a name nor an address as it is commonly written"
	}
	return ""
}

func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// isNumber reports whether some systems read the last label of a host as a number, and so the host as an address.
func isNumber(label string) bool {
	if digits, hex := strings.CutPrefix(label, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
