package party

import (
	"context"
	"sync"
)

// Ear is what a party has heard and nobody has taken yet; parties embed it, and have their Hear of it.
type Ear struct {
	news chan struct{} // holds one token while there may be something to take

	mu    sync.Mutex // guards the fields below
	words []Word
	shut  bool
}

// NewEar returns an Ear that is open.
func NewEar() *Ear { return &Ear{news: make(chan struct{}, 1)} }

// Put adds a word.
func (e *Ear) Put(w Word) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.words = append(e.words, w)
	e.tell()
}

// Shut says that nothing more comes, until Open.
func (e *Ear) Shut() { e.set(true) }

// Open says that something may come again.
func (e *Ear) Open() { e.set(false) }

func (e *Ear) set(shut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = shut
	e.tell()
}

// tell wakes who hears. mu is held.
func (e *Ear) tell() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// Hear is that of a [Party].
func (e *Ear) Hear(ctx context.Context) (Word, error) {
	for {
		e.mu.Lock()
		if len(e.words) > 0 {
			w := e.words[0]
			e.words = e.words[1:]
			e.mu.Unlock()
			return w, nil
		}
		shut := e.shut
		e.mu.Unlock()
		if shut {
			return Word{}, ErrGone
		}
		select {
		case <-e.news:
		case <-ctx.Done():
			return Word{}, ctx.Err()
		}
	}
}
