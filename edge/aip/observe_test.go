package aip_test

import (
	"context"
	"slices"
	"testing"

	"github.com/agora-relay/agora/edge/aip"
)

func TestCallsAreCountedByAllCodesOfTheProtocol(t *testing.T) {
	t.Parallel()
	var names []string
	for name, n := range new(aip.Counted).Codes() {
		if names = append(names, name); n != 0 {
			t.Errorf("%d have ended with %s", n, name)
		}
	}
	want := []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	if !slices.Equal(names, want) {
		t.Errorf("codes are %q, want %q", names, want)
	}
}

func TestWhatIsNoCallComesFromNowhere(t *testing.T) {
	t.Parallel()
	if at := aip.CallerAddr(context.Background()); at != nil {
		t.Errorf("it comes from %v", at)
	}
}
