package loadgen

import (
	"github.com/agora-relay/agora/internal/loadgen/socket"
	"github.com/agora-relay/agora/wire"
)

// AppendText appends f as a client's WebSocket frame.
func AppendText(dst []byte, f *wire.Frame) []byte { return socket.AppendText(dst, f.Append(nil)) }

// AppendBytes appends what stands in a text frame as a client's WebSocket frame.
func AppendBytes(dst, text []byte) []byte { return socket.AppendText(dst, text) }
