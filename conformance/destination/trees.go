package destination

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

	// The bodies themselves stay until the end of their scenario: so many bytes of those
	// that are asked for object by object, over all scenarios.
	keptBodies = 24 << 20
	fewBytes   = 1 << 20 // are not counted
)

// reserve waits until the answers about all these objects have room beside those that
// other scenarios keep. Calls are counted twice: some are made again.
func (sc *scenario) reserve(calls []request) error {
	size := 0
	for _, c := range calls {
		if o := sc.catalog.object(c.object); o != nil {
			size += 2 * o.size
		}
	}
	if size < fewBytes || sc.reserved > 0 {
		return nil
	}
	n := int64(min(size, keptBodies))
	if err := sc.wide.Acquire(sc.ctx, n); err != nil {
		return overtime(sc.ctx)
	}
	sc.reserved = n
	return nil
}

// release gives the room to others.
func (sc *scenario) release() {
	if sc.reserved > 0 {
		sc.wide.Release(sc.reserved)
	}
	sc.reserved = 0
}

// trees holds the values of the replies that were looked at last.
type trees struct {
	mu   sync.Mutex
	of   map[*reply]*order.Element
	last order.List // of *tree, the latest first
	size int
}

type tree struct {
	reply *reply
	root  *wire.Node
	cost  int
}

// get gives what is kept of a reply, nil when nothing is.
func (t *trees) get(r *reply) *wire.Node {
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
func (t *trees) put(r *reply, root *wire.Node, cost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[*reply]*order.Element{}
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

// spare is drop for the client. What counts the bytes of bodies reaches it, and must not
// keep alive what it waits for the end of.
func (t *trees) spare() func() {
	kept := weak.Make(t)
	return func() {
		if t := kept.Value(); t != nil {
			t.drop()
		}
	}
}

// drop forgets all of them.
func (t *trees) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.Init()
	t.of, t.size = nil, 0
}

// doc gives the body as JSON, nil when it is not one value.
func (r *reply) doc() *wire.Node {
	if r.small != nil || r.trees == nil || r.docErr != nil {
		return r.small
	}
	if root := r.trees.get(r); root != nil {
		return root
	}
	root, cost, err := r.Tree()
	if err != nil {
		// It was read before, so that nothing is wrong with it but the lack of memory, which
		// ends with the steps that look at other replies now.
		root, _ = wire.Parse(r.Body)
	}
	r.trees.put(r, root, cost)
	return root
}
