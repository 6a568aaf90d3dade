package web_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/agora-relay/agora/edge/web"
)

func TestAPageHasNoMoreThanAnAnswerMay(t *testing.T) {
	t.Parallel()
	all := make([]int, 10)
	for i := range all {
		all[i] = i
	}
	third := func(i *int) ([]byte, error) { return bytes.Repeat([]byte{'0' + byte(*i)}, web.MaxListing/3-1), nil }
	page, last, err := web.Page(slices.Values(all), 1000, third)
	if err != nil || len(page) != 3 || last == nil || *last != 2 {
		t.Errorf("a page has %d entries, the last one is %v, %v", len(page), last, err)
	}
	page, last, err = web.Page(slices.Values(all[7:]), 1000, third)
	if err != nil || len(page) != 3 || last != nil {
		t.Errorf("the last page has %d entries, and goes on behind %v, %v", len(page), last, err)
	}
	page, last, err = web.Page(slices.Values(all), 2, third)
	if err != nil || len(page) != 2 || last == nil || *last != 1 {
		t.Errorf("a page of 2 has %d entries, the last one is %v, %v", len(page), last, err)
	}
	failed := errors.New("it can't be written")
	if _, _, err = web.Page(slices.Values(all), 2, func(*int) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("what can't be written: %v", err)
	}
}
