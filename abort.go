package agora

import "bytes"

// AbortBody is what an Abort says: why the cluster has given something up. With a Stream it is that stream; as a
// Control without one it is a request that ran out of time.
type AbortBody struct {
	Code    Code
	Request string // id of the request as its sender named it; empty where there is none
}

// Message returns the Abort: Kind, From, To and Stream are the caller's to set. Its body is the code, and after a space
// the request.
func (a AbortBody) Message() Message {
	b := append(make([]byte, 0, len(a.Code)+1+len(a.Request)), a.Code...)
	if a.Request != "" {
		b = append(append(b, ' '), a.Request...)
	}
	return Message{Part: Abort, Body: b}
}

// AbortBody returns what an Abort says.
func (m *Message) AbortBody() AbortBody {
	code, request, _ := bytes.Cut(m.Body, []byte{' '})
	return AbortBody{Code: Code(code), Request: string(request)}
}
