package rest

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire"
)

// MountProtocol adds GET /asyncapi.json to a mux: the frames of /ws as a document of AsyncAPI, with the limits that frames are decoded by. It is made
// when it is asked for first.
func MountProtocol(k *web.Kit, mux *http.ServeMux, limits wire.Limits) {
	made := sync.OnceValues(func() ([]byte, error) { return json.Marshal(wire.AsyncAPI(limits)) })
	k.Handle(mux, "/asyncapi.json", web.Methods{http.MethodGet: func(x *web.Exchange) error {
		b, err := made()
		if err != nil {
			return err
		}
		return x.AnswerBytes(http.StatusOK, "application/json", b)
	}})
}
