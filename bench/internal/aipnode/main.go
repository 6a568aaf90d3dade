// Command aipnode is an agent and a toolbox of AIP, at all addresses that it is given. It answers with what it was
// asked.
package main

import (
	"fmt"
	"os"

	"github.com/agora-relay/agora/bench/internal/aip"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: aipnode LISTEN...")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "aipnode:", aip.Serve(os.Args[1:]...))
	os.Exit(1)
}
