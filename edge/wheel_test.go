package edge

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimerFiresOnceNotEarlyAndAtMostATickLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel(time.Second)
		defer w.Close()
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			// Beyond one round of the wheel too; armed between two ticks.
			d := time.Duration(rnd.Int64N(int64(3 * wheelSlots * time.Second)))
			time.Sleep(time.Duration(rnd.Int64N(int64(2 * time.Second))))
			armed := time.Now()
			var fired atomic.Int32
			w.Add(&Timer{Fire: func() {
				fired.Add(1)
				if took := time.Since(armed); took < d || took > d+time.Second {
					t.Errorf("timer of %v fired after %v", d, took)
				}
			}}, d)
			time.Sleep(d + time.Second)
			synctest.Wait()
			if fired.Load() != 1 {
				t.Fatalf("timer of %v fired %d times, want once", d, fired.Load())
			}
		}
	})
}

func TestTimerAddedAgainByItsCallbackGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel(time.Second)
		defer w.Close()
		var beats atomic.Int32
		var beat Timer
		beat.Fire = func() { beats.Add(1); w.Add(&beat, 30*time.Second) }
		w.Add(&beat, 30*time.Second)
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		if beats.Load() != 10 {
			t.Errorf("fired %d times in five minutes, want 10", beats.Load())
		}
	})
}

func TestAddingAnArmedTimerMovesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel(time.Second)
		defer w.Close()
		var fired atomic.Int32
		x := Timer{Fire: func() { fired.Add(1) }}
		for range 20 {
			w.Add(&x, 10*time.Second)
			time.Sleep(5 * time.Second)
		}
		synctest.Wait()
		if fired.Load() != 0 {
			t.Fatalf("fired %d times while it was put off, want never", fired.Load())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if fired.Load() != 1 {
			t.Errorf("fired %d times, want once", fired.Load())
		}
	})
}

func TestRemovedTimerStaysSilentEvenWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel(time.Second)
		defer w.Close()
		var fired atomic.Int32
		var a, b Timer
		a.Fire = func() { fired.Add(1); w.Remove(&b) } // both are due in the same tick
		b.Fire = func() { fired.Add(1); w.Remove(&a) }
		w.Add(&a, time.Second)
		w.Add(&b, time.Second)
		w.Remove(&Timer{}) // never added
		time.Sleep(time.Minute)
		synctest.Wait()
		if fired.Load() != 1 {
			t.Errorf("%d of two timers fired, want the first alone", fired.Load())
		}
	})
}

func TestClosedWheelFiresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWheel(time.Second)
		var fired atomic.Int32
		x, y := Timer{Fire: func() { fired.Add(1) }}, Timer{Fire: func() { fired.Add(1) }}
		w.Add(&x, time.Second)
		w.Close()
		w.Close()
		w.Add(&y, time.Second)
		time.Sleep(time.Minute)
		if fired.Load() != 0 {
			t.Errorf("fired %d times after Close, want never", fired.Load())
		}
	})
}

func TestArmingATimerAllocatesNothing(t *testing.T) {
	w := NewWheel(time.Hour)
	defer w.Close()
	x := Timer{Fire: func() {}}
	if n := testing.AllocsPerRun(100, func() { w.Add(&x, time.Minute) }); n != 0 {
		t.Errorf("Add allocates %v times, want 0", n)
	}
}

func BenchmarkWheelAdd(b *testing.B) {
	w := NewWheel(time.Second)
	defer w.Close()
	timers := make([]Timer, 10_000)
	for i := range timers {
		timers[i].Fire = func() {}
	}
	for i := 0; b.Loop(); i++ {
		w.Add(&timers[i%len(timers)], 30*time.Second)
	}
}
