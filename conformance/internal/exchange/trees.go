package exchange

import (
	order "container/list"
	"sync"
	"weak"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// The values of replies are a multiple of their text. A scenario that asks about fifty
// objects keeps all replies until its end, and many scenarios run at once, so the values
// of large replies are kept for those that were looked at last, and read again for others.
const (
	smallTree = 32 << 10 // bytes that stay with the reply
	keptTrees = 16 << 20 // bytes of all larger ones
)

// Trees holds the values of the replies that were looked at last.
type Trees struct {
	mu   sync.Mutex
	of   map[*Reply]*order.Element
	last order.List // of *tree, the latest first
	size int
}

type tree struct {
	reply *Reply
	root  *wire.Node
	cost  int
}

// get gives what is kept of a reply, nil when nothing is.
func (t *Trees) get(r *Reply) *wire.Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[r]
	if e == nil {
		return nil
	}
	t.last.MoveToFront(e)
	return e.Value.(*tree).root
}

// put keeps the values of a reply, and drops those that were not looked at for longest.
func (t *Trees) put(r *Reply, root *wire.Node, cost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[*Reply]*order.Element{}
	}
	if t.of[r] != nil {
		return
	}
	t.of[r] = t.last.PushFront(&tree{r, root, cost})
	for t.size += cost; t.size > keptTrees && t.last.Len() > 1; {
		oldest := t.last.Remove(t.last.Back()).(*tree)
		delete(t.of, oldest.reply)
		t.size -= oldest.cost
	}
}

// Spare is Drop for the client. What counts the bytes of bodies reaches it, and must not
// keep alive what it waits for the end of.
func (t *Trees) Spare() func() {
	kept := weak.Make(t)
	return func() {
		if t := kept.Value(); t != nil {
			t.Drop()
		}
	}
}

// Drop forgets all of them.
func (t *Trees) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.Init()
	t.of, t.size = nil, 0
}
