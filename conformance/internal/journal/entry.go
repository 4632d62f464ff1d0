package journal

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The kinds of lines.
const (
	entryRun     = "run"
	entryBatch   = "batch"
	entryOutcome = "outcome"
	entryCleaned = "cleaned"
)

// line is one line of the file; exactly the member that Entry names is there.
type line struct {
	Entry   string   `json:"entry"`
	Header  *Header  `json:"header,omitempty"`
	Batch   *Batch   `json:"batch,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
	Cleaned *Cleaned `json:"cleaned,omitempty"`
}

// Batch announces a batch.
type Batch struct {
	Seq         int64             `json:"seq"` // from 1, without gaps
	Object      string            `json:"object"`
	Field       string            `json:"field"` // the active identifier
	Operation   string            `json:"operation"`
	Identifiers []json.RawMessage `json:"identifiers"`
}

// Outcome says how a batch was answered, record by record.
type Outcome struct {
	Seq          int64             `json:"seq"`
	Acknowledged []json.RawMessage `json:"acknowledged"`
	Refused      []json.RawMessage `json:"refused"`
	Unknown      []json.RawMessage `json:"unknown"`
}

// Cleaned says that keys are gone.
type Cleaned struct {
	Object      string            `json:"object"`
	Field       string            `json:"field"`
	Identifiers []json.RawMessage `json:"identifiers"`
}

func (b Batch) check() error {
	switch {
	case b.Object == "":
		return errors.New("batch without an object")
	case b.Field == "":
		return errors.New("batch without an identifier field")
	case b.Operation == "":
		return errors.New("batch without an operation")
	}
	return checkIdentifiers(b.Identifiers)
}

func checkIdentifiers(identifiers []json.RawMessage) error {
	for i, raw := range identifiers {
		if !json.Valid(raw) {
			return fmt.Errorf("identifier %d is not a JSON value", i)
		}
	}
	return nil
}

// State says what is known about a key.
type State string

// The states of a key. Refused means that every batch with it was refused;
// Deleted that the last thing acknowledged was a delete.
const (
	Written State = "written"
	Refused State = "refused"
	Unknown State = "unknown"
	Deleted State = "deleted"
)

// Key is one record that may exist at the destination.
type Key struct {
	Object     string
	Field      string
	Identifier json.RawMessage
	State      State
}

// grouped gathers keys of the same object and field into one line each.
func grouped(keys []Key) []Cleaned {
	var groups []Cleaned
	at := map[[2]string]int{}
	for _, key := range keys {
		name := [2]string{key.Object, key.Field}
		i, known := at[name]
		if !known {
			i = len(groups)
			at[name] = i
			groups = append(groups, Cleaned{Object: key.Object, Field: key.Field})
		}
		groups[i].Identifiers = append(groups[i].Identifiers, key.Identifier)
	}
	return groups
}
