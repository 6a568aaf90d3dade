package simcluster

import (
	"fmt"
	"slices"
	"testing"
)

func TestSame(t *testing.T) {
	same := 0
	for seed := range uint64(12) {
		a, b := Play(t, MakePlan(seed)), Play(t, MakePlan(seed))
		if slices.Equal(a.Story, b.Story) {
			same++
			continue
		}
		for i := range a.Story {
			if i >= len(b.Story) || a.Story[i] != b.Story[i] {
				fmt.Println(seed, i, len(a.Story), "\n  ", a.Story[i], "\n  ", b.Story[min(i, len(b.Story)-1)])
				break
			}
		}
	}
	fmt.Println("same", same)
}
