package agora

import (
	"strconv"
	"strings"
)

// itemParameter is the parameter of a media type that says which item of a stream a body is a part of.
const itemParameter = ";item="

// ItemMedia returns a media type that says of which item of its stream a body is a part, counted from 1: the parts of one item
// are put together in their order. 0 is a body that is an item by itself.
func ItemMedia(media string, item uint32) string {
	if item == 0 {
		return media
	}
	return media + itemParameter + strconv.FormatUint(uint64(item), 10)
}

// SplitItem returns a media type without its item, and that; 0 where it has none.
func SplitItem(media string) (bare string, item uint32) {
	at := strings.LastIndex(media, itemParameter)
	if at < 0 {
		return media, 0
	}
	n, err := strconv.ParseUint(media[at+len(itemParameter):], 10, 32)
	if err != nil || n == 0 || ItemMedia(media[:at], uint32(n)) != media {
		return media, 0
	}
	return media[:at], uint32(n)
}
