package destsim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/internal/rawjson"
)

// hookNames are the hooks that an author can give to a judge, besides
// the read-back; the simulator has all of them.
var hookNames = []string{"cleanup", "restart", "alter_schema", "break_downstream", "rotate_token"}

// hookRequest is what a judge sends to a hook.
type hookRequest struct {
	Hook            string            `json:"hook"`
	Object          string            `json:"object"`
	Action          string            `json:"action"` // begin, end; "" is begin
	IdentifierField string            `json:"identifier_field"`
	Identifiers     []json.RawMessage `json:"identifiers"`
}

// hooksSchema is the line by which an editor knows the keys of the file.
const hooksSchema = "# yaml-language-server: $schema=https://raw.githubusercontent.com/destkit/destkit/main/cmd/destkit/schemas/hooks.json\n"

// HooksFile is the YAML that locates the hooks of the simulator at baseURL
// ("http://127.0.0.1:8080") for a judge. The control token travels in the URLs,
// so the file is as secret as the token.
func (c Config) HooksFile(baseURL string) []byte {
	var b strings.Builder
	b.WriteString(hooksSchema)
	query := ""
	if c.ControlToken != "" {
		query = "?control_token=" + url.QueryEscape(c.ControlToken)
	}
	for _, name := range hookNames {
		at := strings.TrimSuffix(baseURL, "/") + "/_control/hooks/" + name + query
		fmt.Fprintf(&b, "%s:\n  url: %s\n", name, store.Quote(at)) // a JSON string is a YAML string
	}
	b.WriteString("timeout: 10s\n")
	return []byte(b.String())
}

// hook answers POST /_control/hooks/NAME. Members that are not known are
// ignored: a judge may say more than the simulator needs.
func (s *Sim) hook(r *http.Request) (any, error) {
	var q hookRequest
	body, err := readControl(r)
	if err == nil {
		err = fill(body, &q)
	}
	if err != nil {
		return nil, err
	}
	if q.Action != "" && q.Action != "begin" && q.Action != "end" {
		return nil, fmt.Errorf("unknown action %q%s", q.Action, didYouMean(q.Action, []string{"begin", "end"}))
	}
	switch name := r.PathValue("name"); name {
	case "cleanup":
		return s.hookCleanup(q)
	case "restart":
		return okReply{OK: true}, s.Restart()
	case "alter_schema":
		return s.hookAlter(q)
	case "break_downstream":
		s.broken.Store(q.Action != "end")
		return okReply{OK: true}, nil
	case "rotate_token":
		return s.hookRotate(q), nil
	default:
		return nil, fmt.Errorf("unknown hook %q%s", name, didYouMean(name, hookNames))
	}
}

// hookCleanup deletes the named records and nothing else.
func (s *Sim) hookCleanup(q hookRequest) (any, error) {
	deleted := 0
	err := s.eachStored(q.Object, q.IdentifierField, q.Identifiers, func(_ json.RawMessage, rows store.Rows, found []*store.Row) error {
		for _, r := range found {
			if err := rows.Remove(r); err != nil {
				return fmt.Errorf("clean up: %w", err)
			}
			deleted++
		}
		return nil
	})
	return struct {
		OK      bool `json:"ok"`
		Deleted int  `json:"deleted"`
	}{true, deleted}, err
}

// restarter is a store that a restart of the process would open again.
type restarter interface{ Restart() error }

// Restart drops whatever a restart of the process would lose. Records in
// memory stay: they represent the destination system behind the endpoint.
func (s *Sim) Restart() error {
	if r, ok := s.store.(restarter); ok {
		if err := r.Restart(); err != nil {
			return fmt.Errorf("restart store: %w", err)
		}
	}
	s.plans.plans.Store(nil)
	s.limits.Store(newLimits(s))
	for _, f := range s.chain().restart {
		f(s)
	}
	return nil
}

// hookRotate puts a new token into force, or the configured one back. The new
// one is derived from the old, so that a repeated call gives the same.
func (s *Sim) hookRotate(q hookRequest) any {
	token := s.config.Token
	if q.Action != "end" {
		token = rotated(token)
	}
	s.token.Store(&token)
	return struct {
		OK    bool   `json:"ok"`
		Token string `json:"token"`
	}{true, token}
}

// rotated is the token that takes the place of another one.
func rotated(token string) string { return cmp.Or(token, "token") + "-rotated" }

// alteredField is the field that the alter_schema hook adds.
const alteredField = "zz_altered"

// hookAlter adds a field and changes the label of the object, or takes both
// back: as a person does in the destination system between two calls.
func (s *Sim) hookAlter(q hookRequest) (any, error) {
	name, label := q.Object, ""
	if names := s.catalogue.Load().names(); name == "" && len(names) > 0 {
		name = names[0]
	}
	err := s.editCatalogue(func(c *catalogue) (*catalogue, error) {
		return c.edit(name, func(o *object) (err error) {
			switch {
			case q.Action == "end" && o.before != nil:
				o.Label, o.before = *o.before, nil
				err = o.removeField(alteredField)
			case q.Action != "end" && o.before == nil:
				before := o.Label
				o.Label, o.before = before+" (altered)", &before
				err = o.addField(FieldConfig{Name: alteredField, Label: "Altered", Type: "string"})
			}
			label = o.Label
			return err
		})
	})
	return struct {
		OK     bool   `json:"ok"`
		Object string `json:"object"`
		Field  string `json:"field"`
		Label  string `json:"label"`
	}{true, name, alteredField, label}, err
}

// readbackRequest queries stored records by the values of one field.
type readbackRequest struct {
	Object          string            `json:"object"`
	IdentifierField string            `json:"identifier_field"`
	Identifiers     []json.RawMessage `json:"identifiers"`
}

type readbackReply struct {
	Records  []readbackRecord `json:"records"`
	Complete bool             `json:"complete"`
}

// readbackRecord is one stored key: Count makes copies visible, Fields are
// those of the first copy. Keys that are not stored are left out.
type readbackRecord struct {
	Identifier json.RawMessage `json:"identifier"`
	Count      int             `json:"count"`
	Fields     json.RawMessage `json:"fields"`
}

// readback gives what the destination holds, without any violation between.
func (s *Sim) readback(q readbackRequest) (any, error) {
	out := readbackReply{Records: []readbackRecord{}, Complete: true}
	err := s.eachStored(q.Object, q.IdentifierField, q.Identifiers, func(identifier json.RawMessage, _ store.Rows, found []*store.Row) error {
		if len(found) > 0 {
			out.Records = append(out.Records, readbackRecord{identifier, len(found), bytes.Clone(found[0].Data)})
		}
		return nil
	})
	return out, err
}

// eachStored hands the rows with each of the identifiers to do, in one unit of work.
func (s *Sim) eachStored(object, name string, identifiers []json.RawMessage, do func(identifier json.RawMessage, rows store.Rows, found []*store.Row) error) error {
	o := s.catalogue.Load().byName[object]
	if o == nil {
		return s.unknownObject(object)
	}
	f := o.byName[name]
	if f == nil {
		return fmt.Errorf("unknown identifier_field %q of object %q%s", name, object, didYouMean(name, o.fieldNames()))
	}
	return s.write(func(u store.Unit) error {
		for _, identifier := range identifiers {
			key := lookupKey(identifier)
			if key == nil {
				continue
			}
			err := u.With(o.table, f.quoted, key, func(rows store.Rows) error {
				found, err := rows.Find(f.quoted, key)
				if err != nil {
					return err
				}
				return do(identifier, rows, found)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// write changes the store outside of batches.
func (s *Sim) write(do func(u store.Unit) error) error {
	u, err := s.store.Begin()
	if err != nil {
		return err
	}
	defer u.Rollback()
	if err := do(u); err != nil {
		return err
	}
	return u.Commit()
}

// lookupKey is the canonical text of any identifier, whatever the field's type:
// a string looked up in an integer field is simply not there. nil can never be
// stored.
func lookupKey(identifier []byte) []byte {
	if len(identifier) == 0 {
		return nil
	}
	switch {
	case identifier[0] == '"':
		text, err := rawjson.StringText(identifier)
		if err != nil {
			return nil
		}
		return store.Quote(text)
	case string(identifier) == "-0":
		return []byte("0")
	case string(identifier) == "null":
		return nil
	}
	return identifier
}
