// Command agora runs Agora, and speaks to it: `agora dev` is a whole cluster in
// one process, `agora token` makes credentials, and the verbs (listen, send, …)
// are a client.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
