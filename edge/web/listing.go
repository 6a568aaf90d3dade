package web

import (
	"encoding/json"
	"iter"

	"github.com/agora-relay/agora/internal/budget"
)

// MaxListing is how many bytes the entries of an answer have at most that lists what there is. More of them are on the
// next page.
const MaxListing = 4 << 20

// Page returns the first entries of a listing as JSON, at most so many, and at most [MaxListing] bytes of them, but one
// at least. last is the one behind which there are more; nil where there are none. encode returns the JSON of an entry;
// where it fails, so does Page.
func Page[A any](all iter.Seq[A], most int, encode func(*A) ([]byte, error)) (page []json.RawMessage, last *A, err error) {
	type encoded struct {
		of   *A
		json []byte
	}
	entries, more := budget.Page(all, most, MaxListing, func(a A) (encoded, int) {
		b, failed := encode(&a)
		if failed != nil {
			err = failed
		}
		return encoded{&a, b}, len(b) + 1
	})
	page = make([]json.RawMessage, len(entries))
	for i, e := range entries {
		page[i] = e.json
	}
	if more {
		last = entries[len(entries)-1].of
	}
	return page, last, err
}
