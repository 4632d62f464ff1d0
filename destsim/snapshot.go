package destsim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// A snapshot is text, one JSON object per line: the head, the settings, the
// objects, every record in ascending order of id, and the end, by which a
// snapshot that was cut off is known.

// snapshotVersion is raised whenever an older program could misread the text.
const snapshotVersion = 1

// snapshotLine is any line; exactly one member is set, besides those of the head.
type snapshotLine struct {
	Snapshot string          `json:"snapshot,omitempty"` // always snapshotKind
	Version  int             `json:"version,omitempty"`
	LastID   int64           `json:"last_id,omitempty"` // the highest id ever given
	Settings *savedSettings  `json:"settings,omitempty"`
	Object   *savedObject    `json:"object,omitempty"`
	Record   json.RawMessage `json:"record,omitempty"` // a savedRecord
	End      *savedEnd       `json:"end,omitempty"`
}

const snapshotKind = "destsim"

// savedSettings is what the control endpoints can change besides the schema,
// and the counters that later answers depend on. No token is among them.
type savedSettings struct {
	Speed     rpc.Speed         `json:"speed"`
	RateLimit int64             `json:"rate_limit"`
	Down      bool              `json:"down"`              // break_downstream
	Rotated   bool              `json:"rotated"`           // rotate_token
	Altered   map[string]string `json:"altered,omitempty"` // alter_schema: labels before
	Chance    []byte            `json:"chance,omitempty"`  // of older snapshots; nothing draws from it
	Calls     map[string]int64  `json:"calls,omitempty"`   // by method
	Total     int64             `json:"total"`
}

// savedObject is an object with its changes at runtime.
type savedObject struct {
	ObjectConfig
	Fields []savedField `json:"fields"`
}

type savedField struct {
	FieldConfig
	Custom bool `json:"custom,omitempty"` // created on write
}

type savedRecord struct {
	ID    int64           `json:"id"`
	Table string          `json:"table"`
	Data  json.RawMessage `json:"data"`
}

type savedEnd struct {
	Objects int   `json:"objects"`
	Records int64 `json:"records"`
}

// Snapshot writes everything that the destination knows: all records with
// their ids, the schema with created fields and every change made at runtime,
// speed and limits, the counters of calls. Batches go
// on meanwhile and none is half in it. Left out are tokens, armed faults, the
// journal, the figures, and what a violation remembers by itself.
func (s *Sim) Snapshot(w io.Writer) error {
	if err := s.snapshot(w); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

func (s *Sim) snapshot(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	line := func(l snapshotLine) error {
		_, err := out.Write(append(encode(l), '\n'))
		return err
	}
	var head []snapshotLine
	end := savedEnd{}
	s.world.Lock() // no restore or reset between the rows and the schema
	unlock := sync.OnceFunc(s.world.Unlock)
	defer unlock()
	err := s.store.Dump(func(lastID int64) {
		head = s.snapshotHead(lastID)
		end.Objects = len(head) - 2
		unlock()
	}, func(table string, r store.Row) error {
		for _, l := range head {
			if err := line(l); err != nil {
				return err
			}
		}
		head = nil
		end.Records++
		return line(snapshotLine{Record: encode(savedRecord{r.ID, table, r.Data})})
	})
	if err != nil {
		return err
	}
	for _, l := range append(head, snapshotLine{End: &end}) {
		if err := line(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

// snapshotHead is everything but the records.
func (s *Sim) snapshotHead(lastID int64) []snapshotLine {
	settings := s.savedSettings()
	head := []snapshotLine{
		{Snapshot: snapshotKind, Version: snapshotVersion, LastID: lastID},
		{Settings: &settings},
	}
	for _, o := range s.catalogue.Load().objects {
		head = append(head, snapshotLine{Object: o.saved()})
	}
	return head
}

// savedSettings returns the settings in force.
func (s *Sim) savedSettings() savedSettings {
	calls, total := s.tally.counts()
	altered := map[string]string{}
	for _, o := range s.catalogue.Load().objects {
		if o.before != nil {
			altered[o.APIName] = *o.before
		}
	}
	return savedSettings{
		Speed: *s.speed.Load(), RateLimit: s.rateLimit.Load(), Down: s.broken.Load(),
		Rotated: *s.token.Load() != s.config.Token, Altered: altered,
		Calls: calls, Total: total,
	}
}

// saved describes an object completely.
func (o *object) saved() *savedObject {
	out := &savedObject{
		ObjectConfig: ObjectConfig{Name: o.APIName, Label: o.Label, CanCreateFields: o.onWrite(), Operations: o.operations},
		Fields:       []savedField{},
	}
	for _, f := range o.fields {
		out.Fields = append(out.Fields, savedField{
			FieldConfig: FieldConfig{
				Name: f.APIName, Label: f.Label, Type: f.Type, Array: f.Array, Identifier: f.Identifier,
				Required: f.Required, Unique: f.unique, Createable: &f.Createable, Updateable: &f.Updateable, MaxLength: f.maxLength,
			},
			Custom: f.custom,
		})
	}
	return out
}

// serveSnapshot answers GET /_control/snapshot. A failure after the first bytes
// ends the connection, and the line about the end is missing.
func (s *Sim) serveSnapshot(w http.ResponseWriter, _ *http.Request) {
	out := startedWriter{w: w}
	err := s.Snapshot(&out)
	switch {
	case err != nil && out.started:
		panic(http.ErrAbortHandler)
	case err != nil:
		reply(w, http.StatusInternalServerError, controlError{err.Error()})
	}
}

// startedWriter knows whether something was written, and labels it.
type startedWriter struct {
	w       http.ResponseWriter
	started bool
}

func (o *startedWriter) Write(b []byte) (int, error) {
	if !o.started {
		o.started = true
		o.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	return o.w.Write(b)
}
