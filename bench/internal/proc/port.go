package proc

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// Ports for servers lie below those that the system gives to connections, which
// begin at 32768 on Linux: it would give one away before its server has it.
const firstPort, lastPort = 18000, 32000

var lastTried atomic.Int64

// Addr returns an address on loopback that nobody listens at.
func Addr() (string, error) {
	for range lastPort - firstPort {
		// Programs that run at the same time begin at different places.
		n := firstPort + (os.Getpid()*37+int(lastTried.Add(1)))%(lastPort-firstPort)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(n))
		if l, err := net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", errors.New("no port is free")
}

// Addrs returns n addresses like [Addr].
func Addrs(n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		var err error
		if all[i], err = Addr(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Answers reports whether a GET is answered with 200 within a second.
func Answers(url string) bool {
	c := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(url)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Listens reports whether somebody accepts connections at addr.
func Listens(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}
