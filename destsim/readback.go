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
	o := s.catalogue.Load().byName[q.Object]
	if o == nil {
		return nil, s.unknownObject(q.Object)
	}
	f := o.byName[q.IdentifierField]
	if f == nil {
		names := make([]string, len(o.fields))
		for i, f := range o.fields {
			names[i] = f.APIName
		}
		return nil, fmt.Errorf("unknown identifier_field %q of object %q%s", q.IdentifierField, q.Object, didYouMean(q.IdentifierField, names))
	}
	u, err := s.store.Begin()
	if err != nil {
		return nil, err
	}
	defer u.Rollback()
	out := readbackReply{Records: []readbackRecord{}, Complete: true}
	for _, identifier := range q.Identifiers {
		key := lookupKey(identifier)
		if key == nil {
			continue
		}
		err := u.With(o.table, f.quoted, key, func(rows store.Rows) error {
			found, err := rows.Find(f.quoted, key)
			if len(found) > 0 {
				out.Records = append(out.Records, readbackRecord{identifier, len(found), bytes.Clone(found[0].Data)})
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read back: %w", err)
		}
	}
	return out, u.Commit()
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
