package model

import "github.com/destkit/destkit/destsim/rpc"

// An update tells a record that is there from one that is not, if the words of its skip
// differ from all that records which are there get. One answer against that, anywhere in
// the run, and updates are no evidence any more.

type witnessKey struct{ object, operation string }

// words are those of the answers to one operation; "" is a success.
type words struct{ ofPresent, ofAbsent map[string]bool }

// witness notes an answer about a key whose state was known before.
func (l *Ledger) witness(e *entry, operation string, n Naming, a Answer) {
	if operation != rpc.OperationUpdate && operation != rpc.OperationDelete || !e.Known || e.overlap || n.Odd || a.Outcome == Unclear {
		return
	}
	k := witnessKey{n.Object, operation}
	w := l.witnesses[k]
	if w == nil {
		if l.witnesses == nil {
			l.witnesses = map[witnessKey]*words{}
		}
		w = &words{map[string]bool{}, map[string]bool{}}
		l.witnesses[k] = w
	}
	said := w.ofAbsent
	if e.Exists {
		said = w.ofPresent
	}
	said[a.Words] = true
}

// Contradicted reports whether updates of an object have given the same answer for a
// record that must be there and for one that must not.
func (l *Ledger) Contradicted(object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.witnesses[witnessKey{object, rpc.OperationUpdate}]
	if w == nil {
		return false
	}
	for said := range w.ofAbsent {
		if w.ofPresent[said] {
			return true
		}
	}
	return false
}

// ShowsSkips reports whether an update of a key that was not there was reported as a skip.
func (l *Ledger) ShowsSkips(object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.witnesses[witnessKey{object, rpc.OperationUpdate}]
	if w == nil {
		return false
	}
	for said := range w.ofAbsent {
		if said != "" {
			return true
		}
	}
	return false
}

// MeansAbsent reports whether the words of a refused delete are those that keys got which
// were not there, and none that was.
func (l *Ledger) MeansAbsent(object, said string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.witnesses[witnessKey{object, rpc.OperationDelete}]
	return w != nil && said != "" && w.ofAbsent[said] && !w.ofPresent[said]
}
