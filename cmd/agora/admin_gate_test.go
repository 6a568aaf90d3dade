package main

import (
	"net"
	"testing"
)

func TestWhoAsksByAnAddressThatOthersHaveNeedsTheToken(t *testing.T) {
	t.Parallel()
	own := ownAddress()
	if own == nil {
		return // there is no network but loopback
	}
	e := launch(t, append(backends(t), "--admin-addr", "0.0.0.0:0")...).ready()
	_, port, err := net.SplitHostPort(e.admin[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range [][]string{nil, {"Host", "127.0.0.1:" + port}, {"X-Forwarded-For", "127.0.0.1"}, {"Forwarded", "for=127.0.0.1"}} {
		if got := get(t, "http://"+net.JoinHostPort(own.String(), port)+"/v1/edges", header); got != 403 {
			t.Errorf("at %v with %v = %d, want 403", own, header, got)
		}
	}
	if got := get(t, "http://127.0.0.1:"+port+"/v1/edges", nil); got != 200 {
		t.Errorf("at loopback = %d, want 200", got)
	}
}

// ownAddress returns an address that this machine has on a network; nil where there is none.
func ownAddress() net.IP {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	return nil
}
