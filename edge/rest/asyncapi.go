package rest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire"
)

// MountProtocol adds GET /asyncapi.json to a mux: the frames of /ws as a document of AsyncAPI, with the limits that
// frames are decoded by. It is made when it is asked for first, and is the same for as long as the process lives. It
// asks for credentials as every path of the kit does: it says what the operator has set.
func MountProtocol(k *web.Kit, mux *http.ServeMux, limits wire.Limits) {
	made := sync.OnceValues(func() (document, error) {
		b, err := json.Marshal(wire.AsyncAPI(limits))
		return document{b, fmt.Sprintf(`"%x"`, sha256.Sum256(b))}, err
	})
	k.HandlePath(mux, "/asyncapi.json", web.Path{Reads: true, Counts: true, Methods: web.Methods{http.MethodGet: func(x *web.Exchange) error {
		d, err := made()
		if err != nil {
			return err
		}
		return x.AnswerTagged(d.tag, "application/json", d.bytes)
	}}})
}

type document struct {
	bytes []byte
	tag   string // its ETag
}
