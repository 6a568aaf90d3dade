package iat_test

import (
	"log"
	"strings"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/party"
)

// devCluster starts a whole cluster in this process, for one example, and
// returns the addresses of its two edges, and what stops it.
func devCluster() (urls []string, stop func()) {
	urls, stop, err := agoratest.Embed(agoratest.Options{
		Edges: 2, Approvals: true, Doors: []func(agoratest.Entry) (agoratest.Opened, error){party.IAT().Open},
	})
	if err != nil {
		log.Fatal(err)
	}
	for i, u := range urls {
		urls[i] = strings.TrimSuffix(u, "/ws")
	}
	return urls, stop
}
