package simlog

import (
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

// Faults are what a cluster of log servers may do to its clients. All are off until they are asked for.
type Faults struct {
	mu       sync.Mutex // guards the fields below
	dice     *rand.Rand
	leaders  map[string]Leader    // of streams, by kind; one that is well is missing
	full     map[string]bool      // by kind: nothing more is stored
	refusing int                  // of a hundred records, how many are refused for no reason
	losing   int                  // of a hundred live frames, how many are lost
	late     bool                 // live frames come late
	lagging  map[string]bool      // by kind: its replicas lag
	lag      map[string][]stored  // by stream: what lagging replicas have
	window   time.Duration        // of ids that are looked at before fences; 0 for none
	ids      map[string]time.Time // when records were sent that were stored since, by stream and id
}

// Leader is how a stream's leader is doing.
type Leader int

const (
	Well   Leader = iota
	Dying         // some of what it is sent is lost, some is stored, and nobody is told
	Silent        // it takes nothing, and answers nothing
	Absent        // nobody answers for the stream, and the one who asks is told at once
)

func (f *Faults) init(seed uint64) {
	f.dice = rand.New(rand.NewPCG(seed, 1))
	f.leaders, f.full = map[string]Leader{}, map[string]bool{}
	f.lagging, f.lag, f.ids = map[string]bool{}, map[string][]stored{}, map[string]time.Time{}
}

// set changes a fault.
func (f *Faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// SetLeader has the leader of the streams of a kind (agent, space, call, book) be well, or not.
func (f *Faults) SetLeader(kind string, is Leader) { f.set(func() { f.leaders[kind] = is }) }

// Lose has so many of a hundred republished records be lost from now on.
func (f *Faults) Lose(percent int) { f.set(func() { f.losing = percent }) }

// Refuse has so many of a hundred records be refused from now on, as if their fence were elsewhere or on its way,
// though it is not.
func (f *Faults) Refuse(percent int) { f.set(func() { f.refusing = percent }) }

// Fill has the servers take no more records for a kind's streams, as those do whose storage is used up, or take them
// again.
func (f *Faults) Fill(kind string, full bool) { f.set(func() { f.full[kind] = full }) }

// LookAtIDsFirst has records that were stored be known by their ids before their fence is looked at, as streams with
// replicas do; one server alone looks at the fence first. window is for how long the streams know ids; 0 ends it.
func (f *Faults) LookAtIDsFirst(window time.Duration) {
	f.set(func() {
		f.window = window
		clear(f.ids)
	})
}

// Lag has the replicas of a kind's streams know nothing from now on of what is stored or dropped, or know all.
func (l *Log) Lag(kind string, lags bool) {
	var has map[string][]stored
	if lags {
		has = l.copies(kind)
	}
	l.Faults.set(func() {
		if l.lagging[kind] = lags; !lags {
			forgetKind(l.lag, kind)
		}
		maps.Copy(l.lag, has)
	})
}

// Delay has what is republished come late, or lets it come.
func (l *Log) Delay(late bool) {
	l.Faults.set(func() { l.late = late })
	if !late {
		for _, d := range l.all() {
			d.release()
		}
	}
}

// Repeat has the last republished records come once more.
func (l *Log) Repeat() {
	for _, d := range l.all() {
		d.repeat()
	}
}

// Disconnect ends every connection, as a server does that goes down. What has come can be read.
func (l *Log) Disconnect() {
	for _, d := range l.all() {
		d.hangUp()
	}
}

// Stops has the server stop: it ends every connection, and takes none until it is back. What it has stored is there.
func (l *Log) Stops(stopped bool) {
	l.mu.Lock()
	l.stopped = stopped
	l.mu.Unlock()
	if stopped {
		l.Disconnect()
	}
}

// Mend ends every fault.
func (l *Log) Mend() {
	l.Faults.set(func() {
		clear(l.leaders)
		clear(l.full)
		clear(l.lagging)
		clear(l.lag)
		l.losing, l.refusing = 0, 0
	})
	l.LookAtIDsFirst(0)
	l.Stops(false)
	l.Delay(false)
}
