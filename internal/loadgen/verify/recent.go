package verify

import "slices"

// maxRecent is how many of something are remembered.
const maxRecent = 64

// recent holds the latest of something, the oldest first.
type recent[T comparable] []T

// add appends v. It returns what is forgotten for it, the zero value while there is room.
func (r *recent[T]) add(v T) (forgotten T) {
	if len(*r) == maxRecent {
		forgotten = (*r)[0]
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, v)
	return forgotten
}

// remove forgets v, and reports whether it was there.
func (r *recent[T]) remove(v T) bool {
	i := slices.Index(*r, v)
	if i >= 0 {
		*r = slices.Delete(*r, i, i+1)
	}
	return i >= 0
}
