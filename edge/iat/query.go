package iat

import (
	"net/url"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/web"
)

// query returns the parameters of a request. Where some are named, it may have no others, and each once.
func query(x *web.Exchange, names ...string) (url.Values, error) {
	q, err := url.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return nil, agora.Errorf(agora.InvalidRequest, "the query can't be read")
	}
	if len(names) == 0 {
		return q, nil
	}
	for name, values := range q {
		if len(values) > 1 || !slices.Contains(names, name) {
			return nil, agora.Errorf(agora.InvalidRequest, "parameters are %s, each once", strings.Join(names, ", "))
		}
	}
	return q, nil
}
