package config

import (
	"fmt"
	"net"
	"strconv"
)

// IsLoopback reports whether an address can be reached from this machine only.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// PlusPort returns the address of edge k; port 0 stays any free one.
func PlusPort(addr string, k int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("address %s: port is not a number", addr)
	}
	if n != 0 {
		n += uint64(k)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

// Nearby returns where a port that listens at addr is reached from this machine.
func Nearby(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
