package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultMaxViewers is how many live pages a console has at once.
const DefaultMaxViewers = 100

// The painter's bounds. It spends at most one part in share of a processor: each
// round is followed by a pause of share times its length.
const (
	share       = 100
	soonest     = 500 * time.Millisecond // between two rounds
	latest      = 15 * time.Second       // between two rounds, however long one took
	perViewer   = 40 * time.Microsecond  // approximate cost of sending
	heartbeat   = 15 * time.Second       // a comment, by which a viewer that has gone is found
	renderTime  = 5 * time.Second        // of one view
	writeTime   = 10 * time.Second       // a viewer that takes no bytes for so long is dropped
	largestView = 2 << 20                // bytes of a live part
)

// hub has the viewers of live pages. It renders each view once for all who look at it,
// and gives everybody the newest state only: who reads slowly misses states between,
// and holds up nothing.
type hub struct {
	c       *Console
	mu      sync.Mutex
	viewers int
	views   map[string]*view
	running bool
	rounds  sync.Mutex    // held by who renders and hands out
	wake    chan struct{} // a viewer has come
	done    chan struct{} // closed with the console
	end     sync.Once

	dropped int64 // viewers that read too slowly
}

// view is a page as many look at it.
type view struct {
	request *http.Request
	page    *pageRoute
	viewers map[*viewer]bool
}

// viewer is one connection. Its channel has room for one state.
type viewer struct {
	states chan []byte
	sum    uint64
}

func newHub(c *Console) *hub {
	return &hub{c: c, views: map[string]*view{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (h *hub) close() { h.end.Do(func() { close(h.done) }) }

// serve sends a viewer the live part of a page whenever it differs.
func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	target, err := url.Parse(Path + r.URL.Query().Get("page"))
	if err != nil || strings.Contains(target.Path, "//") {
		http.Error(w, "page: must be a path of this console", http.StatusBadRequest)
		return
	}
	// The request of a view outlives the first viewer, and has no cookies.
	shown := (&http.Request{Method: http.MethodGet, URL: target, Host: r.Host, TLS: r.TLS, Header: http.Header{}}).
		WithContext(context.Background())
	page := h.c.find(shown)
	if page == nil || h.c.sets()[page.name].Lookup("live") == nil {
		http.Error(w, "page: has no live part", http.StatusNotFound)
		return
	}
	key := r.Host + " " + target.String()
	v, err := h.enter(key, shown, page)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(key, v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	h.send(w, r, v)
}

// send writes states until the viewer goes, or takes no bytes.
func (h *hub) send(w http.ResponseWriter, r *http.Request, v *viewer) {
	out := http.NewResponseController(w)
	write := func(text []byte) error {
		if err := out.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return out.Flush()
	}
	if write([]byte("retry: 3000\n\n")) != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		text := []byte(": here\n\n")
		select {
		case <-r.Context().Done():
			return
		case <-h.done:
			select {
			case text := <-v.states: // the last one
				_ = write(text)
			default:
			}
			_ = write([]byte("event: end\ndata: the program stops\n\n")) // it may have gone
			return
		case <-beat.C:
		case text = <-v.states:
		}
		if err := write(text); err != nil {
			h.mu.Lock()
			h.dropped++
			h.mu.Unlock()
			return
		}
	}
}

// enter adds a viewer and starts the painter with the first one.
func (h *hub) enter(key string, r *http.Request, page *pageRoute) (*viewer, error) {
	most := cmp.Or(h.c.opts.MaxViewers, DefaultMaxViewers)
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
		return nil, errors.New("the program stops")
	default:
	}
	if h.viewers >= most {
		return nil, fmt.Errorf("%d live pages are open, the most this console has; close one, or reload this page by hand", most)
	}
	h.viewers++
	one := h.views[key]
	if one == nil {
		one = &view{request: r, page: page, viewers: map[*viewer]bool{}}
		h.views[key] = one
	}
	v := &viewer{states: make(chan []byte, 1)}
	one.viewers[v] = true
	if !h.running {
		h.running = true
		go h.paint()
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return v, nil
}

func (h *hub) leave(key string, v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.viewers--
	if one := h.views[key]; one != nil {
		if delete(one.viewers, v); len(one.viewers) == 0 {
			delete(h.views, key)
		}
	}
}

// paint renders the watched pages until the last viewer is gone.
func (h *hub) paint() {
	pause, last := time.Duration(0), ""
	for {
		timer := time.NewTimer(max(pause, soonest))
		select {
		case <-timer.C:
		case <-h.done:
			timer.Stop()
			return
		}
		h.mu.Lock()
		if h.viewers == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		views := slices.Collect(maps.Values(h.views))
		h.mu.Unlock()
		stamp, fresh := h.stamp(), false
		select {
		case <-h.wake:
			fresh = true
		default:
		}
		if stamp != "" && stamp == last && !fresh {
			continue
		}
		last = stamp
		began, sent := time.Now(), 0
		for _, one := range views {
			sent += h.round(one)
		}
		pause = min(latest, share*(time.Since(began)+time.Duration(sent)*perViewer))
	}
}

func (h *hub) stamp() string {
	if h.c.opts.Stamp == nil {
		return ""
	}
	return h.c.opts.Stamp()
}

// round renders one view and hands it to those who have not seen it. It gives the
// number of viewers that got something.
func (h *hub) round(one *view) (sent int) {
	h.rounds.Lock() // no older state replaces a newer one
	defer h.rounds.Unlock()
	name, text, err := h.render(one)
	if err != nil {
		return 0 // the page shows the reason when it is loaded
	}
	sum := fnv.New64a()
	_, _ = sum.Write(text)
	event := []byte(nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range one.viewers {
		if v.sum == sum.Sum64() {
			continue
		}
		if event == nil {
			event = eventOf(name, text)
		}
		v.sum = sum.Sum64()
		select {
		case <-v.states: // an older state that was not sent yet
		default:
		}
		v.states <- event
		sent++
	}
	return sent
}

// last renders every view once more.
func (h *hub) last() {
	h.mu.Lock()
	views := slices.Collect(maps.Values(h.views))
	h.mu.Unlock()
	for _, one := range views {
		h.round(one)
	}
}

// render is the live part of a page as it is now, with the event that brings it:
// paint, or next with the address of the page that has taken its place.
func (h *hub) render(one *view) (name string, text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			h.c.opts.Log.Error("live part cannot be made", "page", one.page.name, "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(one.request.Context(), renderTime)
	defer cancel()
	r := one.request.Clone(ctx)
	req := &Request{HTTP: r, Root: Path, c: h.c}
	data, err := one.page.show(req)
	if err != nil {
		return "", nil, err
	}
	if next, ok := data.(Next); ok {
		return "next", []byte(req.Root + string(next)), nil
	}
	f := h.c.frame(req, data)
	f.page = h.c.sets()[one.page.name]
	var b bytes.Buffer
	if err := f.page.ExecuteTemplate(&b, "live", f); err != nil {
		h.c.opts.Log.Error("live part cannot be written", "page", one.page.name, "error", err)
		return "", nil, err
	}
	if b.Len() > largestView {
		return "", nil, errors.New("the live part is too large")
	}
	return "paint", b.Bytes(), nil
}

// eventOf writes text as one server-sent event.
func eventOf(name string, text []byte) []byte {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	for line := range bytes.SplitSeq(bytes.ReplaceAll(text, []byte("\r"), nil), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
