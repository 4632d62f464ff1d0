package rest

import (
	"bytes"
	"net/http"
	"slices"
	"sync"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// rendered keeps the JSON of syncs by id and version, and which syncs are on a
// page until anything in the store changes. The cache is bounded: beyond that it
// starts again, which costs one rendering each.
type rendered struct {
	mu    sync.RWMutex
	texts map[int64]renderedText
	size  int

	generation uint64
	pages      map[syncPage]listedSyncs
}

// syncPage is one page of the syncs of a workspace.
type syncPage struct {
	workspaceID int64
	page        store.Page
}

// listedSyncs is a page by ids and versions: the rows themselves may be
// cached or not.
type listedSyncs struct {
	heads []store.Head
	total int64
}

// maxPages bounds the kept pages.
const maxPages = 1000

// listed gives the heads on a page that were read under a generation of the
// store.
func (r *rendered) listed(generation uint64, at syncPage) (listedSyncs, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.generation != generation {
		return listedSyncs{}, false
	}
	kept, ok := r.pages[at]
	return kept, ok
}

// keepListed starts again with the first page of another generation.
func (r *rendered) keepListed(generation uint64, at syncPage, l listedSyncs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages == nil || r.generation != generation || len(r.pages) >= maxPages {
		r.generation, r.pages = generation, map[syncPage]listedSyncs{}
	}
	r.pages[at] = l
}

// renderedText is a row as JSON under the version that it was rendered from.
type renderedText struct {
	version int64
	text    []byte
}

// maxRendered bounds the kept text in bytes.
const maxRendered = 64 << 20

// newRendered keeps nothing yet.
func newRendered() *rendered { return &rendered{texts: map[int64]renderedText{}} }

// get is the text of that version, nil when another or none is kept. It must
// not be changed.
func (r *rendered) get(id, version int64) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	// Versions only grow, so an older text can never be taken for a newer one.
	if kept, ok := r.texts[id]; ok && kept.version == version {
		return kept.text
	}
	return nil
}

// all are the texts of the heads, nil unless every one is kept.
func (r *rendered) all(heads []store.Head) [][]byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	texts := make([][]byte, 0, len(heads))
	for _, head := range heads {
		kept, ok := r.texts[head.ID]
		if !ok || kept.version != head.Version {
			return nil
		}
		texts = append(texts, kept.text)
	}
	return texts
}

// put drops everything when there is no more room: simpler than an order of
// use, and rare.
func (r *rendered) put(id, version int64, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size+len(text) > maxRendered {
		clear(r.texts)
		r.size = 0
	}
	r.size += len(text) - len(r.texts[id].text)
	r.texts[id] = renderedText{version, text}
}

// forget drops everything, as a restored world has other rows under the ids.
func (r *rendered) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.texts)
	r.size, r.pages = 0, nil
}

// listRendered is call.list for rows that are JSON already.
func listRendered(c *call.Call, page store.Page, total int64, rows [][]byte) (*call.Reply, error) {
	// An empty list is encoded, and the rows are put into it as they are:
	// encoding them again would cost more than all the rest.
	envelope, err := c.List(page, total, []struct{}{})
	if err != nil {
		return nil, err
	}
	head, err := rawjson.Encode(envelope.Body)
	if err != nil {
		return nil, err
	}
	buffer := replyBuffers.Get().(*[]byte)
	*buffer = fillData((*buffer)[:0], head, rows)
	return &call.Reply{Code: http.StatusOK, Raw: *buffer, Release: func() { replyBuffers.Put(buffer) }}, nil
}

// emptyData is how encoding/json writes a list without rows.
const emptyData = `"data":[]`

// replyBuffers are the bodies of long lists, to be used again.
var replyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// fillData appends an envelope to out, with the rows in its empty list.
func fillData(out, envelope []byte, rows [][]byte) []byte {
	at := bytes.Index(envelope, []byte(emptyData)) + len(emptyData) - 1
	size := len(envelope) + len(rows)
	for _, row := range rows {
		size += len(row)
	}
	out = append(slices.Grow(out, size), envelope[:at]...)
	for i, row := range rows {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, row...)
	}
	return append(out, envelope[at:]...)
}
