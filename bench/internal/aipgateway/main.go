// Command aipgateway passes calls of AIP on to an agent and to a toolbox, and does nothing else: the least that a
// gateway of gRPC's Go library can cost.
package main

import (
	"fmt"
	"os"

	"github.com/agora-relay/agora/bench/internal/aip"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: aipgateway LISTEN AGENT TOOLBOX")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "aipgateway:", aip.Forward(os.Args[1], os.Args[2], os.Args[3]))
	os.Exit(1)
}
