package destsim

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/internal/rawjson"
)

// readbackRequest asks for stored records by the values of one field.
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

// write changes the store beside the batches.
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
// a string that is asked of an integer field is simply not there. nil can
// never be stored.
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
