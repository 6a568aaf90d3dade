package edge_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// Why a backend does not answer is logged; what a payload looks like that can't be read is not.
func TestARefusalIsLoggedWithItsCauseWhereThatQuotesNobody(t *testing.T) {
	var out strings.Builder
	log := edge.NewRefusalLog(slog.New(slog.NewTextHandler(&out, nil)))
	for _, code := range []agora.Code{agora.Unavailable, agora.InvalidRequest} {
		log.Note(&agora.Error{Code: code, Message: "no", Cause: errors.New("cause-of-" + string(code))}, func() []slog.Attr { return nil })
	}
	if s := out.String(); !strings.Contains(s, "cause-of-UNAVAILABLE") || strings.Contains(s, "cause-of-INVALID") || !strings.Contains(s, "code=INVALID_REQUEST") {
		t.Errorf("logged:\n%s", s)
	}
}
