package liquid

import (
	"slices"
)

// reads is what a template uses: columns of the record, other variables, and
// those that it defines itself.
type reads struct {
	columns map[string]bool
	all     bool
	used    []mention
	defined map[string]bool
	filters []mention
	line    int // that is being read
}

// mention is a name and the line in which it first stands.
type mention struct {
	name string
	line int
}

// newReads knows the record from the start.
func newReads() *reads {
	return &reads{columns: map[string]bool{}, defined: map[string]bool{recordName: true}}
}

// define notes a variable that the template makes. Where it does so is not
// looked at: a branch may come first.
func (r *reads) define(name string) { r.defined[name] = true }

// note takes a variable apart: record["name"] and record.name are columns.
func (r *reads) note(l lookup) {
	root, ok := l.root.(literal)
	if !ok {
		// The name of the variable is computed: it may be the record.
		r.all = true
		return
	}
	name := toText(root.is)
	if name != recordName {
		r.used = r.mention(r.used, name)
		return
	}
	// The record as a whole: any column may be printed.
	if len(l.path) == 0 {
		r.all = true
		return
	}
	column, ok := l.path[0].key.(literal)
	if !ok {
		r.all = true
		return
	}
	if text, ok := column.is.(string); ok {
		// record.size may be the number of columns as well as a column.
		if l.path[0].command {
			r.all = true
			return
		}
		r.columns[text] = true
	}
}

// mention adds a name that is not there yet.
func (r *reads) mention(list []mention, name string) []mention {
	if slices.ContainsFunc(list, func(m mention) bool { return m.name == name }) {
		return list
	}
	return append(list, mention{name, r.line})
}

// check finds what can never work, whatever the record holds.
func (r *reads) check() error {
	for _, used := range r.filters {
		if _, ok := filters[used.name]; !ok {
			return &Error{Line: used.line, prefix: "Liquid error: ", err: publishedf("undefined filter %s", used.name)}
		}
	}
	for _, used := range r.used {
		if !r.defined[used.name] {
			return &Error{Line: used.line, prefix: "Liquid error: ", err: unknownVariable(used.name)}
		}
	}
	return nil
}
