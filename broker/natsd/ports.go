package natsd

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Where systems take the ports of connections from begins above the last of these: a port of those could be taken
// before a server listens on it, or while it is stopped.
const (
	firstPort = 10_000
	lastPort  = 17_999 // above them are those that tests give to servers which they stop and start
	portTries = 1000
)

// freePorts returns ports of the loopback that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range portTries {
		port := firstPort + rand.N(lastPort-firstPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		defer l.Close() // together, so that none is given twice
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports for the embedded NATS from %d to %d", n, firstPort, lastPort)
}
