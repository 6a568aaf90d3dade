package tools

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/agora-relay/agora"
)

// Bounds of the schemas that are kept compiled, of which those go that were used the longest ago.
const (
	maxKept      = 4096
	maxKeptBytes = 16 << 20 // as they came in; compiled they take some tens of times as much
)

// cache keeps schemas compiled, and what is wrong with those that can't be.
type cache struct {
	most int // bytes of one

	mu    sync.Mutex // guards the fields below
	byKey map[[sha256.Size]byte]*list.Element
	order *list.List // of *kept, the one used last in front
	size  int
}

type kept struct {
	key   [sha256.Size]byte
	size  int
	ready sync.Once // compiles it, outside of the lock
	s     *Schema
	fault *fault
}

func newCache(most int) *cache {
	return &cache{most: most, byKey: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// compile returns a compiled schema, once compiled for all who ask for it.
func (c *cache) compile(schema []byte) (*Schema, *fault) {
	if len(schema) > c.most { // and is not kept
		return compile(schema, c.most)
	}
	k := c.find(sha256.Sum256(schema), len(schema))
	k.ready.Do(func() { k.s, k.fault = compile(schema, c.most) })
	return k.s, k.fault
}

// find returns the place of a schema, which may not be compiled yet.
func (c *cache) find(key [sha256.Size]byte, size int) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*kept)
	}
	k := &kept{key: key, size: size}
	c.byKey[key] = c.order.PushFront(k)
	c.size += size
	for c.order.Len() > maxKept || c.size > maxKeptBytes {
		last := c.order.Remove(c.order.Back()).(*kept)
		delete(c.byKey, last.key)
		c.size -= last.size
	}
	return k
}

// err is a fault as an agent sees it.
func (f *fault) err(of string) *agora.Error { return agora.Errorf(agora.InvalidRequest, "%s%s", of, f) }
