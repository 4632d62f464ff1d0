// Package api owns the wire types of the REST API (spec 2): what a client sends
// and what it gets back, in the words of the wire. It refuses to know how
// anything is stored, checked or run: it is a leaf that the server, its store,
// its sources and its executor share.
//
// Shapes that the specification does not show come from published facts and say
// so. A pointer is a value that may be null on the wire; fields without
// omitempty are always present.
package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The words of "status" in replies (spec 4; deleted and cancelled are published
// facts, two l's).
const (
	StatusSuccess   = "success"
	StatusCreated   = "created"
	StatusUpdated   = "updated"
	StatusDeleted   = "deleted"
	StatusCancelled = "cancelled"
	StatusNotFound  = "not_found"
	StatusError     = "error"
)

// Reply is the envelope of one resource (spec 4).
type Reply struct {
	Status string `json:"status"`
	Data   any    `json:"data,omitempty"`
}

// List is the envelope of every list (spec 2.1). Next is the legacy URL of the
// next page: a *string that may be nil where the list has it.
type List struct {
	Status     string     `json:"status"`
	Pagination Pagination `json:"pagination"`
	Data       any        `json:"data"`
}

// Pagination of a list (spec 2.1, 8). Pages count from 1; PrevPage and NextPage
// are null at the ends; LastPage is 0 for an empty list.
type Pagination struct {
	TotalRecords int64  `json:"total_records"`
	PerPage      int64  `json:"per_page"`
	PrevPage     *int64 `json:"prev_page"`
	Page         int64  `json:"page"`
	NextPage     *int64 `json:"next_page"`
	LastPage     int64  `json:"last_page"`
}

// Problem is one thing wrong with a payload. Field is its place in the payload,
// such as mappings[2].from.data; body means the whole payload.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p Problem) String() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// Time is a moment on the wire: ISO 8601 in UTC with milliseconds (spec 2).
type Time struct{ time.Time }

// At wraps a moment; the zero time is nil, which is null on the wire.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the moment in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	return append(append([]byte{'"'}, t.UTC().Format(timeLayout)...), '"'), nil
}

// UnmarshalJSON reads any RFC 3339 moment.
func (t *Time) UnmarshalJSON(text []byte) error {
	parsed, err := time.Parse(time.RFC3339Nano, strings.Trim(string(text), `"`))
	if err != nil {
		return fmt.Errorf("a time must be such as 2026-01-31T12:00:00Z, not %.60s", text)
	}
	t.Time = parsed
	return nil
}

// Ptr is the address of a value, for optional fields.
func Ptr[T any](v T) *T { return &v }

// Value is what p points to, or the zero value where it is nil.
func Value[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// Raw is v as JSON text; it panics for what JSON cannot hold, which is a
// mistake of the program and never of its input.
func Raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return text
}
