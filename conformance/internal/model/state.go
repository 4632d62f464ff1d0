package model

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
)

// State is what the destination must hold for a key by what it has acknowledged (spec 4.2).
type State struct {
	Known     bool // false when a batch had no answer, or two results disagree
	Exists    bool
	Written   bool                       // the latest acknowledgement wrote values, which a reported skip does not
	Created   bool                       // the destination has once acknowledged the record
	Operation string                     // the last one that named the record
	Refused   bool                       // was that operation
	Changes   int                        // how often it was sent with other values than before
	Values    map[string]json.RawMessage // those that are known; after batches at the same time they are not
}

func absent() State { return State{Known: true, Values: map[string]json.RawMessage{}} }

func (s State) clone() State {
	s.Values = maps.Clone(s.Values)
	return s
}

// take takes one answer into account.
func (e *entry) take(operation string, n Naming, outcome Outcome) {
	for name, raw := range n.Values {
		if was, sent := e.sent[name]; e.Operation != "" && sent && !bytes.Equal(was, raw) {
			e.Changes++
			break
		}
	}
	e.sent, e.Operation, e.Refused = n.Values, operation, outcome == Refused
	switch {
	case outcome == Refused:
		e.skip(n)
	case e.overlap:
		e.takeBeside(operation, n, outcome)
	case outcome == Acknowledged:
		e.acknowledge(operation, n)
	default:
		e.Known = false
		e.loosen(operation, n)
	}
}

// skip: a refusal and a reported skip leave things as they were.
func (e *entry) skip(n Naming) {
	e.Written = false
	for name, raw := range n.Values {
		e.values.refused.add(name, raw)
	}
}

// acknowledge takes a success, which may be a reported skip.
func (e *entry) acknowledge(operation string, n Naming) {
	switch {
	case operation == rpc.OperationDelete:
		e.values.bury(e.Values)
		e.Known, e.Exists, e.Written, e.Values = true, false, false, map[string]json.RawMessage{}
		return
	case operation == rpc.OperationInsert && !e.Known:
		e.insertUnknown(n)
		return
	case operation == rpc.OperationInsert && e.Exists, operation == rpc.OperationUpdate && !e.Exists:
		e.skip(n)
		return
	}
	existed := e.Exists
	for name := range e.Values {
		if _, mapped := n.Values[name]; existed && !mapped {
			e.values.unmapped.add(name, nil) // RES-014 recommends that it stays
		}
	}
	e.Known, e.Exists, e.Written, e.Created = true, true, true, true
	for name, raw := range n.Values {
		if existed && n.Fixed != nil && n.Fixed(name) {
			continue
		}
		if was, had := e.Values[name]; had {
			e.values.replaced.add(name, was)
		}
		e.Values[name] = raw
		delete(e.values.loose, name)
		delete(e.values.unmapped, name)
	}
}

// insertUnknown: an insert has created the record or found it, with the values of either.
func (e *entry) insertUnknown(n Naming) {
	e.Known, e.Exists, e.Created, e.Written = true, true, true, true
	for name, raw := range n.Values {
		if one, loose := e.values.loose[name]; loose && !bytes.Equal(one, raw) {
			e.Written = false
			continue
		}
		e.Values[name] = raw
		delete(e.values.loose, name)
	}
}

// takeBeside takes the answer of one of several batches at once, whose order is not known.
func (e *entry) takeBeside(operation string, n Naming, outcome Outcome) {
	e.loosen(operation, n)
	switch {
	case operation == rpc.OperationDelete:
		e.Known, e.removed = false, true
	case outcome == Acknowledged && operation != rpc.OperationUpdate && !e.removed && (e.Known || operation == rpc.OperationUpsert):
		e.Known, e.Exists, e.Written, e.Created = true, true, true, true
	case e.Known && !e.Exists:
		e.Known = false
	}
}

// loosen takes back the values that a batch may have replaced, or removed.
func (e *entry) loosen(operation string, n Naming) {
	if e.values.loose == nil {
		e.values.loose = map[string]json.RawMessage{}
	}
	if operation == rpc.OperationDelete {
		for name := range e.Values {
			e.values.loose[name] = nil
		}
		e.Values = map[string]json.RawMessage{}
		return
	}
	for name, raw := range n.Values {
		one, loose := e.values.loose[name]
		if _, had := e.Values[name]; had || loose && !bytes.Equal(one, raw) {
			raw = nil
		}
		delete(e.Values, name)
		e.values.loose[name] = raw
	}
}

// history is which values a record has had, and must not have again.
type history struct {
	replaced past // by acknowledged batches
	buried   past // of the time before the latest delete
	refused  past // of batches that were refused or skipped
	unmapped past // fields that an acknowledged batch has left out since they were sent
	// loose are the fields whose value is not known, with the only one that it can be; nil
	// where there are several.
	loose map[string]json.RawMessage
}

// bury: a deleted record has none of its values any more.
func (h *history) bury(values map[string]json.RawMessage) {
	for name, raw := range values {
		h.buried.add(name, raw)
	}
	for name, kept := range h.replaced {
		for _, raw := range kept {
			h.buried.add(name, raw)
		}
	}
	h.replaced, h.refused, h.unmapped, h.loose = nil, nil, nil, nil
}

// past are values by field.
type past map[string][]json.RawMessage

// mostRemembered bounds the values of a field that are kept for a key.
const mostRemembered = 8

func (p *past) add(name string, raw json.RawMessage) {
	if *p == nil {
		*p = past{}
	}
	if kept := (*p)[name]; len(kept) < mostRemembered && !slices.ContainsFunc(kept, func(k json.RawMessage) bool { return bytes.Equal(k, raw) }) {
		(*p)[name] = append(kept, raw)
	}
}
