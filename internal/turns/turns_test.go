package turns

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFewAreAtWorkAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := Turns{AtOnce: 3}
		var now, most, done atomic.Int32
		var all sync.WaitGroup
		begun := time.Now()
		for range 30 {
			all.Go(func() {
				defer turns.Take()()
				most.Store(max(most.Load(), now.Add(1)))
				<-time.After(longest / 2)
				now.Add(-1)
				done.Add(1)
			})
		}
		all.Wait()
		if took, want := time.Since(begun), 10*longest/2; most.Load() != 3 || done.Load() != 30 || took != want {
			t.Errorf("%d were at work at a time, and %d done after %v, want 3, and 30 after %v", most.Load(), done.Load(), took, want)
		}
	})
}

func TestWhoComesFirstGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := Turns{AtOnce: 1}
		end := turns.Take()
		var order []int
		var all sync.WaitGroup
		for k := range 5 {
			all.Go(func() {
				defer turns.Take()()
				order = append(order, k)
			})
			synctest.Wait()
		}
		end()
		all.Wait()
		for k, who := range order {
			if who != k {
				t.Fatalf("they went in the order %v", order)
			}
		}
	})
}

func TestWhoWaitsForOthersHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := Turns{AtOnce: 2}
		first, second := turns.Take(), turns.Take()
		begun := time.Now()
		third := turns.Take()
		if waited := time.Since(begun); waited != longest {
			t.Errorf("the third waited for %v, want %v", waited, longest)
		}
		first() // these end long after they have ceased to count, and take nobody's place
		second()
		fourth := turns.Take()
		begun = time.Now()
		fifth := turns.Take()
		if waited := time.Since(begun); waited != longest {
			t.Errorf("the fifth waited for %v, want %v: two are at work", waited, longest)
		}
		third()
		fourth()
		fifth()
	})
}

func TestWhoWaitsForSomebodyOutThereCountsAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := Turns{AtOnce: 1}
		begun := time.Now()
		for range 10 {
			turns.TakeFor(longest / 10)
		}
		turns.Take()()
		if waited := time.Since(begun); waited != longest {
			t.Errorf("who came behind ten that say nothing waited for %v, want %v", waited, longest)
		}
	})
}
