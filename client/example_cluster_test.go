package client_test

import (
	"log"

	"github.com/agora-relay/agora/internal/agoratest"
)

// devCluster starts a whole cluster in this process, for one example, and
// returns the addresses of its two edges, and what stops it.
func devCluster() (urls []string, stop func()) {
	urls, stop, err := agoratest.Embed(agoratest.Options{Edges: 2})
	if err != nil {
		log.Fatal(err)
	}
	return urls, stop
}
