// Package rest is the door for programs that speak plain HTTP and JSON, such as curl: each path is one verb of an actor, which
// needs no session. No rule of the relay lives here.
package rest

import (
	"net/http"

	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
)

// Mount adds the door's paths to a mux:
//
//	GET /agents              the agents of the tenant, sorted by id; ?skill=, ?domain=, ?dialect= those that fit, ?after= and ?limit= a page of them
//	GET /agents/{id}         all that one of them says of itself
//	GET /agents/{id}/card    the same, in the very bytes with which it registered
//	PUT /agents/{id}         registers it without a connection, or renews that; ?ttl= says for how long
//	DELETE /agents/{id}      ends that
//	POST /agents/find        those that fit {skill|goal, limit}, the best first
//	POST /agents/{id}/ask    asks it, and answers with its reply
//	POST /agents/{id}/handoff       the same with a request {method, path, params, input_data}, in the way of its dialect
//	POST /agents/{id}/tools/{tool}  the same with the arguments of one of its tools
func Mount(k *web.Kit, mux *http.ServeMux, c *carrier.Carriers) {
	d := &door{c}
	for path, methods := range map[string]web.Methods{
		"/agents":      {http.MethodGet: agents},
		"/agents/{id}": {http.MethodGet: agent, http.MethodPut: register, http.MethodDelete: unregister},
		"/agents/find": { // an agent may be called find
			http.MethodPost: find, http.MethodGet: agent, http.MethodPut: register, http.MethodDelete: unregister,
		},
		"/agents/{id}/card":         {http.MethodGet: d.card},
		"/agents/{id}/ask":          {http.MethodPost: ask},
		"/agents/{id}/handoff":      {http.MethodPost: d.handoff},
		"/agents/{id}/tools/{tool}": {http.MethodPost: d.callTool},
	} {
		k.HandlePath(mux, path, web.Path{Methods: methods, Reads: true})
	}
}

// door is what its paths share.
type door struct{ carriers *carrier.Carriers }
