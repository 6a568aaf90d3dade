package iat

import "github.com/agora-relay/agora"

// Fault is why an envelope was refused, and what an error envelope says of it besides: see [AppendFault].
type Fault struct {
	Err  *agora.Error
	Path string // JSON pointer to the place, such as "/header/msg_id"; empty for the envelope as a whole
	ID   string // msg_id of what was refused, where it could be read
	From string // its header.from, where that could be read and is an agent id
}

// Error returns code and message.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the error that an agent may see.
func (f *Fault) Unwrap() error { return f.Err }

// fault returns the INVALID_REQUEST that says what is wrong at a place.
func fault(path, what string) *Fault {
	at := path
	if at == "" {
		at = "the envelope"
	}
	return &Fault{Err: agora.Errorf(agora.InvalidRequest, "%s %s", at, what), Path: path}
}
