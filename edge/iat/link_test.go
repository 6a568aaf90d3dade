package iat

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// The credentials of an agent end its request and its session, each by itself. Where the request was first, what the
// session says is not told any more: the one who ends the request is to tell it.
func TestALinkThatEndsAlreadyKeepsTheReasonThatItHas(t *testing.T) {
	d := new(Door)
	d.writers.Linger = time.Hour
	l := &link{door: d, line: new(eventLine)}
	l.out.Init(l, &d.writers, edge.Admission{})
	l.out.Hold()
	l.out.Shut()
	l.Close(edge.Reason{Cause: edge.Expired, Code: agora.Unauthorized, Text: "the credentials were revoked"})
	if why := l.reason(); why.Cause != edge.Lost || why.Code != "" {
		t.Errorf("ends as %+v, want no word that nobody was told", why)
	}
}
