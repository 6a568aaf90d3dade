package web

import (
	"net/http"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

func TestThePeersSystemAcknowledgesWhatWasWritten(t *testing.T) {
	reached := make(chan Reach, 1)
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": func(x *Exchange) error {
		if _, err := x.Events(); err != nil {
			return err
		}
		reached <- x.Reach()
		<-x.Context().Done()
		return nil
	}})
	s.each(func(t *testing.T, c *http.Client) {
		r := s.ask(t, c, "GET", "/events", "")
		reach := await.Recv(t, "the request", reached)
		written, ok := reach.Written()
		if !ok || written == 0 {
			t.Fatalf("Written = %d, %v, want more", written, ok)
		}
		await.True(t, "all is acknowledged", func() bool {
			acked, ok := reach.Acked()
			return ok && acked >= written
		})
		r.Body.Close()
	})
	if _, ok := (Reach{}).Written(); ok {
		t.Error("a connection that is not known is known")
	}
}
