package aip

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora"
)

// Item is a piece of a message's content, a ContentItem.
type Item struct {
	Mode Mode
	Data []byte // UTF-8 where Mode is TEXT
}

// Items returns the content of an encoded AgentMessage; nil where there is none. What they hold are slices of raw. An item without data, or of a kind
// that the protocol does not have, is left out. INVALID_REQUEST where the bytes are malformed, MESSAGE_TOO_LARGE beyond [MaxItems].
func Items(raw []byte) ([]Item, error) {
	items, err := contentOf(raw, fieldContent)
	return items, malformed("AgentMessage", err)
}

// contentOf returns the content that stands in a field of a message.
func contentOf(raw []byte, number protowire.Number) (items []Item, err error) {
	f := fields{rest: raw}
	for f.next() {
		if f.number != number || f.kind != protowire.BytesType {
			continue
		}
		i, ok, err := readItem(f.bytes)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if len(items) == MaxItems {
			return nil, errItems
		}
		items = append(items, i)
	}
	return items, f.err
}

var errItems = agora.Errorf(agora.MessageTooLarge, "the content has more than %d items", MaxItems)

// readItem reads a ContentItem: of its kinds the last one counts. ok is false where it has none.
func readItem(raw []byte) (i Item, ok bool, err error) {
	f := fields{rest: raw}
	for f.next() {
		mode := Mode(f.number - 1)
		if f.kind != protowire.BytesType || mode < Mode_TEXT || mode > Mode_EMBEDDED {
			continue
		}
		if mode == Mode_TEXT && !utf8.Valid(f.bytes) {
			return i, false, errUTF8
		}
		i, ok = Item{mode, f.bytes}, true
	}
	return i, ok, f.err
}

// appendItems appends content as a field of a message.
func appendItems(dst []byte, number protowire.Number, items []Item) []byte {
	for _, i := range items {
		kind := protowire.Number(i.Mode) + 1
		dst = protowire.AppendTag(dst, number, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(protowire.SizeTag(kind)+protowire.SizeBytes(len(i.Data))))
		dst = appendField(dst, kind, i.Data)
	}
	return dst
}

// sizeOf returns about how many bytes content takes.
func sizeOf(items []Item) (n int) {
	for _, i := range items {
		n += len(i.Data) + 2*(1+protowire.SizeVarint(uint64(len(i.Data))))
	}
	return n
}

// Media types of what is no text, by its kind.
const (
	MediaImage    = "image/*"
	MediaAudio    = "audio/*"
	MediaEmbedded = "application/octet-stream"
)

// MediaOf returns the media type of a kind of bytes; that of text for TEXT.
func MediaOf(m Mode) string {
	switch m {
	case Mode_TEXT:
		return agora.MediaText
	case Mode_IMAGE:
		return MediaImage
	case Mode_AUDIO:
		return MediaAudio
	}
	return MediaEmbedded
}

// ModeOf returns the kind of bytes of a media type: an image, audio, or anything else.
func ModeOf(media string) Mode {
	switch kind, _, _ := strings.Cut(media, "/"); {
	case strings.EqualFold(kind, "image"):
		return Mode_IMAGE
	case strings.EqualFold(kind, "audio"):
		return Mode_AUDIO
	}
	return Mode_EMBEDDED
}
