package budget_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora/internal/budget"
)

func TestAPageEndsWhereTheRoomDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about       string
		sizes       []int
		most, bytes int
		want        []int
		more        bool
	}{
		{"nothing is there", nil, 5, 10, []int{}, false},
		{"all fit", []int{4, 6}, 5, 10, []int{4, 6}, false},
		{"one byte too many", []int{4, 7}, 5, 10, []int{4}, true},
		{"a small one behind a large one waits", []int{4, 7, 1}, 5, 10, []int{4}, true},
		{"as many as are wanted", []int{1, 1, 1}, 2, 10, []int{1, 1}, true},
		{"just as many", []int{1, 1}, 2, 10, []int{1, 1}, false},
		{"the first is on the page, however large", []int{40, 1}, 5, 10, []int{40}, true},
	} {
		page, more := budget.Page(slices.Values(c.sizes), c.most, c.bytes, func(n int) (int, int) { return n, n })
		if !reflect.DeepEqual(page, c.want) || more != c.more {
			t.Errorf("%s: %v, more %v; want %v, %v", c.about, page, more, c.want, c.more)
		}
	}
}

// told is what stays of items.
func told(items []budget.Item, c budget.Cut) (bytes int, out []budget.Item) {
	for _, item := range items[:c.Entries] {
		left := budget.Item{Bytes: item.Bytes}
		for _, n := range item.Schemas {
			if c.KeepsSchema(n) {
				left.Schemas = append(left.Schemas, n)
			} else {
				left.Bytes -= n
			}
		}
		for _, n := range item.Descriptions {
			if c.KeepsDescription(n) {
				left.Descriptions = append(left.Descriptions, n)
			} else {
				left.Bytes -= n
			}
		}
		bytes += left.Bytes
		out = append(out, left)
	}
	return bytes, out
}

func TestTheLargestSchemasGoFirstThenDescriptionsThenTheLastEntries(t *testing.T) {
	t.Parallel()
	items := []budget.Item{
		{Bytes: 100, Schemas: []int{30, 5}, Descriptions: []int{20, 20}},
		{Bytes: 90, Schemas: []int{40}, Descriptions: []int{20}},
	}
	for _, c := range []struct {
		about string
		bytes int
		want  []budget.Item
		left  []string
	}{
		{"all fit", 190, items, nil},
		{"the largest schema", 189, []budget.Item{items[0], {Bytes: 50, Descriptions: []int{20}}}, []string{"schemas"}},
		{"the next one too", 149, []budget.Item{{Bytes: 70, Schemas: []int{5}, Descriptions: []int{20, 20}}, {Bytes: 50, Descriptions: []int{20}}}, []string{"schemas"}},
		{"of descriptions as long as each other the last", 114, []budget.Item{{Bytes: 65, Descriptions: []int{20, 20}}, {Bytes: 30}}, []string{"schemas", "descriptions"}},
		{"no text at all", 55, []budget.Item{{Bytes: 25}, {Bytes: 30}}, []string{"schemas", "descriptions"}},
		{"not even all entries", 54, []budget.Item{{Bytes: 25}}, []string{"schemas", "descriptions", "agents"}},
		{"none", 24, nil, []string{"schemas", "descriptions", "agents"}},
	} {
		cut := budget.Fit(items, c.bytes)
		if names := cut.LeftOut("agents"); !slices.Equal(names, c.left) {
			t.Errorf("%s: leaves out %v, want %v", c.about, names, c.left)
		}
		if _, got := told(items, cut); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.about, got, c.want)
		}
	}
}

func TestATextTakesNoLessThanItsSizeInJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		b, err := json.Marshal(text)
		if n := budget.JSON(text); err != nil || n > len(b)-2 || n < len(text) {
			t.Errorf("%q takes %d bytes, and %s is told to take %d at least", text, len(b)-2, b, n)
		}
	})
	if n := budget.JSON("a\x01\n\"é"); n != 1+6+2+2+2 {
		t.Errorf("it takes %d bytes", n)
	}
}

func TestWhatFitsIsNeverLargerThanTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 5)
		items := make([]budget.Item, rapid.IntRange(0, 8).Draw(t, "entries"))
		whole := 0
		for i := range items {
			items[i] = budget.Item{Bytes: rapid.IntRange(1, 9).Draw(t, "bare"), Schemas: sizes.Draw(t, "schemas"), Descriptions: sizes.Draw(t, "descriptions")}
			for _, n := range slices.Concat(items[i].Schemas, items[i].Descriptions) {
				items[i].Bytes += n
			}
			whole += items[i].Bytes
		}
		most := rapid.IntRange(0, 200).Draw(t, "budget")
		cut := budget.Fit(items, most)
		left := cut.LeftOut("agents")
		bytes, _ := told(items, cut)
		if bytes > most {
			t.Errorf("%d bytes, more than %d", bytes, most)
		}
		if (left == nil) != (whole <= most) {
			t.Errorf("leaves out %v of %d bytes, where %d fit", left, whole, most)
		}
	})
}
