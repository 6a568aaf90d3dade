// Command forward hands on the bytes of every connection, both ways, and does nothing with them: the
// least that can stand between a client and a server.
//
//	forward LISTEN UPSTREAM
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: forward LISTEN UPSTREAM")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "forward:", forward(os.Args[1], os.Args[2]))
	os.Exit(1)
}

// forward serves until accepting fails. Its connections end with the process.
func forward(listen, upstream string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				client.Close()
				return
			}
			go pump(server, client)
			pump(client, server)
		}()
	}
}

// pump copies through memory, as the one who reads frames must, until either side ends.
func pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 4<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
