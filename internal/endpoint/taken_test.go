package endpoint

import (
	"errors"
	"net"
	"testing"
)

func TestAPortThatAnotherListenerHasIsTaken(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := net.Listen("tcp", first.Addr().String()); !Taken(err) {
		t.Errorf("Taken(%v) = false", err)
	}
	if err := errors.New("no such host"); Taken(err) {
		t.Errorf("Taken(%v) = true", err)
	}
}
