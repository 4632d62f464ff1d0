// Package mapping turns a source row into a destination record, and decides
// whether the configuration of a sync can do so. It owns the rules of a sync's
// payload (spec 2.6 to 2.8, 4.1, 8, 9), the Liquid templates of its mappings,
// the normalization of names and the casts to the types of the wire. It is the
// only door to the Liquid library.
//
// It refuses to know where rows come from, who calls, where anything is
// stored and how records are sent: a Subject holds what it needs to know
// about the source and the destination.
package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// Subject is a sync's configuration with the source and destination to check
// it against. Rules about something that is not known are skipped, so the
// zero value of every field but Config only makes Check more lenient.
type Subject struct {
	Config            api.SyncConfig
	Present           map[string]bool        // top-level keys that the payload had; nil: all
	Object            *api.DestinationObject // nil: not known
	DestinationType   string                 // custom_api, local_files, …; "": not known
	UpdatesPart       bool                   // an update need not map fields that only creating requires
	Columns           []api.Column           // of the source object
	ColumnsKnown      bool
	Streaming         bool                                       // a streaming topic is the source
	StreamingDatabase bool                                       // the source is a streaming database
	Lookups           func(object string) *api.DestinationObject // other objects of the destination; nil, or answering nil: not known
	ExistingAlerts    []int64                                    // ids of the stored sync's alerts
	Running           bool                                       // for a run: a column that has no field is left out
}

// Check gives all problems of a sync's configuration in the order of spec 2.6;
// none means that it is valid. It accepts a configuration as a client sends it
// and as Normalize stores it.
func Check(s Subject) []api.Problem {
	c := &checker{Subject: s, config: &s.Config}
	// The order is that in which a person reads the payload. Rules do not stop
	// one another: all problems are reported at once.
	c.checkOperation()
	c.checkDestination()
	c.checkSource()
	c.checkMappings()
	c.checkLabel()
	c.checkAlerts()
	c.checkAdvanced()
	c.checkMode()
	c.checkFieldBehavior()
	c.checkSchemaChangePolicy()
	c.checkFamily()
	c.checkHighWaterMark()
	c.checkDeprecatedThreshold()
	c.checkStrategies()
	c.checkSegments()
	c.checkFlatSchedule()
	return c.problems
}

// checker collects the problems of one Subject.
type checker struct {
	Subject
	config   *api.SyncConfig
	problems []api.Problem
}

// bad notes a problem; field is its place on the wire.
func (c *checker) bad(field, format string, args ...any) {
	c.problems = append(c.problems, api.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// sent reports whether the payload had a top-level key. A value left over
// from the stored configuration is not held against the client: Normalize
// drops it.
func (c *checker) sent(key string) bool { return c.Present == nil || c.Present[key] }

// oneOf refuses a value outside an enum and reports whether it was inside.
func (c *checker) oneOf(field, value string, known ...string) bool {
	if slices.Contains(known, value) {
		return true
	}
	if value == "" {
		c.bad(field, "is required: one of %s", strings.Join(known, ", "))
	} else {
		c.bad(field, "unknown value %q: must be one of %s", foreign.Clip(value, 80), strings.Join(known, ", "))
	}
	return false
}

// within refuses a number outside a closed range.
func (c *checker) within(field string, value, low, high int64) {
	if value < low || value > high {
		c.bad(field, "must be from %d to %d, not %d", low, high, value)
	}
}

// text is the value of an optional string, "" for none.
func text(s *string) string { return api.Value(s) }
