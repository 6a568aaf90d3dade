// Package iat holds tests that have clients nobody here wrote speak to the IAT door of a running cluster: Node's HTTP/2, fetch
// and WebSocket, Python's http.client and websockets, curl and nghttp. They run with the build tag interop (make interop).
package iat
