// Command agora runs Agora, and speaks to it: `agora edge` is one edge of a
// cluster, `agora dev` a whole one in one process, `agora token` makes
// credentials, and the verbs (listen, send, …) are a client.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
