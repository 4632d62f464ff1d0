// Package call owns one call on its way through the service, of the API or of the
// control API: its body, its checks by the document and the dialect, the caller, one
// state of the store to read or to change, and the reply with its envelope and its
// page. The work of a call is left to its handler.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
)

// Shared is what all calls have in common.
type Shared struct {
	Store   *store.Store
	Dialect Switches
	BaseURL string // of the API, as clients have it; "": taken from each request
	MaxBody int64  // in bytes
	Before  func() // tests: runs before each change
}

// Call is one request on its way through the service.
type Call struct {
	Shared   *Shared
	Ctx      context.Context
	Hold     *statelock.Hold // the lock of the state, which Ctx belongs to
	R        *http.Request
	Op       *Operation
	Who      Principal
	Began    time.Time
	Body     []byte
	sent     []byte // as it came, where body was put right
	unread   error  // why there is no body
	Present  map[string]json.RawMessage
	Warnings []string
}

// The clamps of spec 8.
const (
	defaultPerPage = 25
	maxPerPage     = 100
)

// ID is an integer of the path; the document's check came before.
func (c *Call) ID(name string) int64 {
	n, err := strconv.ParseInt(c.R.PathValue(name), 10, 64)
	if err != nil {
		return 0 // no row has it
	}
	return n
}

// Arrived is the body as the client has sent it.
func (c *Call) Arrived() []byte {
	if c.sent != nil {
		return c.sent
	}
	return c.Body
}

// Flag reads a boolean of the query; the document's check came before.
func (c *Call) Flag(name string) bool {
	text := c.R.URL.Query().Get(name)
	return text == "1" || strings.EqualFold(text, "true")
}

// Page reads page, per_page and order (spec 8): 0 is page 1, per_page above 100
// is 100, newest first by default.
func (c *Call) Page() store.Page {
	query := c.R.URL.Query()
	number := func(name string, missing int64) int64 {
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil || n < 1 {
			return missing
		}
		return n
	}
	return store.Page{
		Number:    number("page", 1),
		PerPage:   min(number("per_page", defaultPerPage), maxPerPage),
		Ascending: query.Get("order") == "asc",
	}
}

// Decode fills v from the body. The document's check came before, so an error
// is a number too large for its field or the like.
func (c *Call) Decode(v any) error {
	if len(c.Body) == 0 {
		return nil
	}
	body := c.Body
	if len(c.Warnings) > 0 { // some of its fields are unknown
		body = exactKeys(body, reflect.TypeOf(v))
	}
	if err := json.Unmarshal(body, v); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			return problem.InvalidField(typed.Field, "does not fit: %s", typed.Value)
		}
		return problem.InvalidField(wholeBody, "cannot be read: %v", err)
	}
	return nil
}

// exactKeys takes out of valid JSON what a type does not have, at any depth.
// encoding/json would take "NAME" for name, and the document has not looked at
// it: it is an unknown field, which the live dialect ignores.
func exactKeys(text json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if rawjson.OwnReader(t) {
		return text
	}
	switch t.Kind() {
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(text, &items) != nil || items == nil {
			return text
		}
		for i, item := range items {
			items[i] = exactKeys(item, t.Elem())
		}
		return written(items, text)
	case reflect.Map, reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return text
		}
		known := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			known = rawjson.KeysOf(t)
		}
		for key, value := range members {
			kind, ok := known[key]
			switch {
			case t.Kind() == reflect.Map:
				members[key] = exactKeys(value, t.Elem())
			case ok:
				members[key] = exactKeys(value, kind)
			default:
				delete(members, key)
			}
		}
		return written(members, text)
	}
	return text
}

// written is v as JSON, or the text that it came from.
func written(v any, text json.RawMessage) json.RawMessage {
	encoded, err := rawjson.Encode(v)
	if err != nil {
		return text
	}
	return encoded
}

// Has reports whether the body holds a key at its top level.
func (c *Call) Has(key string) bool {
	if c.Present == nil {
		c.Present = map[string]json.RawMessage{}
		_ = json.Unmarshal(c.Body, &c.Present) // a body that is no object has no keys
	}
	_, ok := c.Present[key]
	return ok
}

// Keys are the keys of the body's top level, as a set.
func (c *Call) Keys() map[string]bool {
	c.Has("")
	keys := make(map[string]bool, len(c.Present))
	for key := range c.Present {
		keys[key] = true
	}
	return keys
}

// View runs fn on one consistent state of the store.
func (c *Call) View(fn func(*store.Tx) error) error { return c.Shared.Store.View(c.Ctx, fn) }

// Update stores all of what fn does or, on an error, nothing.
func (c *Call) Update(fn func(*store.Tx) error) error {
	if before := c.Shared.Before; before != nil {
		before()
	}
	return c.Shared.Store.Update(c.Ctx, fn)
}
