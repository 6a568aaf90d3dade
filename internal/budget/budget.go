// Package budget decides how much of a listing one answer tells, so that no answer is larger than the clients of a door
// take, however large the cluster is.
//
// An answer that can be continued is a page: see [Page]. One that can't is told with less of each entry: see [Fit].
package budget

import (
	"cmp"
	"iter"
	"slices"
)

// Page returns the first entries of a listing, as many as an answer has room for: at most so many, and at most so many
// bytes, but one at least. more says that there are others behind them. encode returns what an entry is answered as,
// and its bytes; it is called once for each entry of the page, and once more.
func Page[A, B any](all iter.Seq[A], most, bytes int, encode func(A) (B, int)) (page []B, more bool) {
	page = []B{}
	for a := range all {
		if len(page) == most {
			return page, true
		}
		b, size := encode(a)
		if bytes -= size; bytes < 0 && len(page) > 0 {
			return page, true
		}
		page = append(page, b)
	}
	return page, false
}

// Item is what an entry takes in an answer.
type Item struct {
	Bytes        int   // all of it, as it is encoded
	Schemas      []int // what is saved at least by each of its texts that is left out first
	Descriptions []int // and by each of those that are left out then
}

// Cut says what an answer leaves out. Anyone who makes the answer goes through the entries, and asks for each text
// once, in the order of its items.
type Cut struct {
	Entries      int // that stay, the first ones
	of           int
	schemas      texts
	descriptions texts
}

// Fit returns what an answer leaves out to have at most so many bytes: schemas, the largest first, then descriptions,
// the largest first, then the last entries.
func Fit(items []Item, bytes int) Cut {
	c := Cut{Entries: len(items), of: len(items)}
	over := -bytes
	for _, item := range items {
		over += item.Bytes
	}
	over = c.schemas.trim(items, over, func(item *Item) []int { return item.Schemas })
	over = c.descriptions.trim(items, over, func(item *Item) []int { return item.Descriptions })
	for over > 0 && c.Entries > 0 { // no text has stayed
		c.Entries--
		over -= items[c.Entries].bare()
	}
	return c
}

// bare is what is left of an entry without its texts.
func (i *Item) bare() int {
	n := i.Bytes
	for _, all := range [...][]int{i.Schemas, i.Descriptions} {
		for _, size := range all {
			n -= size
		}
	}
	return n
}

// KeepsSchema reports whether the next schema stays, by its bytes.
func (c *Cut) KeepsSchema(bytes int) bool { return c.schemas.keeps(bytes) }

// KeepsDescription reports whether the next description stays, by its bytes.
func (c *Cut) KeepsDescription(bytes int) bool { return c.descriptions.keeps(bytes) }

// LeftOut names what is left out, of "schemas", "descriptions" and what entries are called; nil where nothing is.
func (c *Cut) LeftOut(entries string) (names []string) {
	if c.schemas.cut {
		names = append(names, "schemas")
	}
	if c.descriptions.cut {
		names = append(names, "descriptions")
	}
	if c.Entries < c.of {
		names = append(names, entries)
	}
	return names
}

// JSON returns how many bytes a text takes in JSON at least, as what an item saves without it.
func JSON(text string) int {
	n := len(text)
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// texts are those of one kind, and which of them stay: those that are shorter than the longest, and the first ones of
// those that are as long.
type texts struct {
	cut     bool // some are left out
	longest int
	first   int
}

// trim leaves out the longest texts until nothing is over, and returns what still is.
func (t *texts) trim(items []Item, over int, of func(*Item) []int) int {
	if over <= 0 {
		return over
	}
	var all []int
	for i := range items {
		for _, size := range of(&items[i]) {
			if size > 0 {
				all = append(all, size)
			}
		}
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(b, a) })
	for n, size := range all {
		if over <= 0 {
			break
		}
		if over -= size; !t.cut || size != t.longest {
			t.cut, t.longest, t.first = true, size, equal(all[n:])
		}
		t.first--
	}
	return over
}

// equal returns how many of the first are the same.
func equal(all []int) int {
	for n, size := range all {
		if size != all[0] {
			return n
		}
	}
	return len(all)
}

func (t *texts) keeps(size int) bool {
	switch {
	case !t.cut || size < t.longest:
		return true
	case size > t.longest || t.first == 0:
		return false
	}
	t.first--
	return true
}
