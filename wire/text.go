package wire

import (
	"encoding/json"

	"github.com/agora-relay/agora/internal/rawjson"
)

// AppendText appends the text of a chunk, a raw JSON string of a decoded frame. It answers false, and appends nothing,
// where the string is not spelt as [AppendMessage] spells that text: escapes other than \" \\ \n \r \t. Such a chunk stays
// JSON, so that its bytes stay as they are. It allocates nothing when dst has room.
func AppendText(dst []byte, chunk json.RawMessage) ([]byte, bool) {
	return rawjson.AppendPlain(dst, chunk)
}
