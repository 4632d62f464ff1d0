package server

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/destkit/destkit/server/store"
)

// rendered keeps the JSON of syncs by id and version. What is kept is bounded:
// beyond that it starts again, which costs one rendering each.
type rendered struct {
	mu    sync.RWMutex
	texts map[int64]renderedText
	size  int
}

type renderedText struct {
	version int64
	text    []byte
}

// maxRendered bounds the kept text in bytes.
const maxRendered = 64 << 20

func newRendered() *rendered { return &rendered{texts: map[int64]renderedText{}} }

// get is the text of that version, nil when another or none is kept. It must
// not be changed.
func (r *rendered) get(id, version int64) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if kept, ok := r.texts[id]; ok && kept.version == version {
		return kept.text
	}
	return nil
}

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
	r.size = 0
}

// listRendered is call.list for rows that are JSON already.
func (c *call) listRendered(page store.Page, total int64, rows [][]byte) (*reply, error) {
	envelope, err := c.list(page, total, []struct{}{})
	if err != nil {
		return nil, err
	}
	head, err := encode(envelope.body)
	if err != nil {
		return nil, err
	}
	return &reply{code: http.StatusOK, raw: fillData(head, rows)}, nil
}

// emptyData is how encoding/json writes a list without rows.
const emptyData = `"data":[]`

// fillData puts the rows into the empty list of an envelope.
func fillData(envelope []byte, rows [][]byte) []byte {
	at := bytes.Index(envelope, []byte(emptyData)) + len(emptyData) - 1
	size := len(envelope) + len(rows)
	for _, row := range rows {
		size += len(row)
	}
	out := append(make([]byte, 0, size), envelope[:at]...)
	for i, row := range rows {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, row...)
	}
	return append(out, envelope[at:]...)
}
