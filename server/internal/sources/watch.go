package sources

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// CodeGone is the error code of a run for which a column is gone that a mapping of the
// client reads.
const CodeGone = "COLUMN_GONE"

// ColumnWatch is what a run finds of the columns of its source.
type ColumnWatch struct {
	// Enforce: for a run, which is held to the policy; false: a view of the sync.
	Enforce bool
	// Changes are the differences to the run before, with the handling of each.
	Changes []api.SchemaChange

	columns  []api.Column // for the next run to compare with; nil: they stay
	accepted []string
	remapped bool // the changes affect the sent records
}

// ColumnRefusal is why a run cannot go on with the columns as they are: its error code, its
// message and its details.
type ColumnRefusal struct{ Code, Message, Detail string }

// ColumnPolicy is what a run does about columns that have changed: one of api.SchemaPropagate,
// api.SchemaIgnore and api.SchemaPause.
func ColumnPolicy(c *api.SyncConfig) string {
	switch {
	case c.SchemaChangePolicy != nil:
		return *c.SchemaChangePolicy
	case Followed(c):
		return api.SchemaPropagate
	}
	return api.SchemaIgnore
}

// Compare compares the columns with those of the run before. Where the types are
// guessed from rows, only names count: each file would have other types.
func (w *ColumnWatch) Compare(y *store.Sync, columns []api.Column, inferred bool) {
	w.columns = shownColumns(columns)
	if ColumnPolicy(&y.Config) == api.SchemaIgnore && Followed(&y.Config) {
		if w.accepted = y.Accepted; w.accepted == nil {
			known := y.Columns
			if known == nil {
				known = columns
			}
			w.accepted = namesOfColumns(known)
		}
	}
	if y.Columns != nil {
		w.Changes = differences(y.Columns, w.columns, inferred)
	}
}

// shownColumns are columns as they are compared and stored with a sync.
func shownColumns(columns []api.Column) []api.Column {
	shown := make([]api.Column, len(columns))
	for i, c := range columns {
		shown[i] = api.Column{Name: c.Name, Type: c.Type}
	}
	return shown
}

func namesOfColumns(columns []api.Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// differences are the differences between two lists of columns, in the order of
// the columns; those that are gone come last.
func differences(before, now []api.Column, inferred bool) (changes []api.SchemaChange) {
	find := func(list []api.Column, name string) *api.Column {
		at := slices.IndexFunc(list, func(c api.Column) bool { return c.Name == name })
		if at < 0 {
			return nil
		}
		return &list[at]
	}
	for i := range now {
		c := &now[i]
		switch was := find(before, c.Name); {
		case was == nil:
			changes = append(changes, api.SchemaChange{Change: api.ColumnAdded, Column: c.Name, After: &c.Type})
		case was.Type != c.Type && !inferred:
			changes = append(changes, api.SchemaChange{Change: api.ColumnRetyped, Column: c.Name, Before: &was.Type, After: &c.Type})
		}
	}
	for i := range before {
		if c := &before[i]; find(now, c.Name) == nil {
			changes = append(changes, api.SchemaChange{Change: api.ColumnRemoved, Column: c.Name, Before: &c.Type})
		}
	}
	return changes
}

// AcceptedColumns marks the columns that no mapping is generated of: those that came after
// the client has last accepted them, unless new ones propagate.
func AcceptedColumns(y *store.Sync, columns []api.Column) []api.Column {
	var known []string
	switch ColumnPolicy(&y.Config) {
	case api.SchemaIgnore:
		if known = y.Accepted; known == nil {
			known = namesOfColumns(y.Columns)
		}
	case api.SchemaPause:
		known = namesOfColumns(y.Columns)
	}
	if len(known) == 0 || !Followed(&y.Config) {
		return columns
	}
	columns = slices.Clone(columns)
	for i := range columns {
		columns[i].Unmapped = !slices.Contains(known, columns[i].Name)
	}
	return columns
}

// Refuse is why a run cannot go on with the columns as they are; nil: it can. A
// missing column that a client has mapped is reported rather than left out: its
// field would silently keep the old value.
func (w *ColumnWatch) Refuse(y *store.Sync, columns []api.Column) *ColumnRefusal {
	if w.Enforce && ColumnPolicy(&y.Config) == api.SchemaPause && len(w.Changes) > 0 {
		for i := range w.Changes {
			w.Changes[i].Handling = "the sync is paused until the change has been reviewed"
		}
		return &ColumnRefusal{
			Code:    api.ErrorSchemaChanged,
			Message: "the columns of the source have changed, and schema_change_policy is pause: the sync is paused, and nothing was sent; look at its mappings, then set paused to false, which accepts the columns as they are",
			Detail:  changesText(w.Changes),
		}
	}
	missing := mapping.Missing(&y.Config, columns)
	if len(missing) == 0 {
		return nil
	}
	lines := make([]string, len(missing))
	for i, m := range missing {
		lines[i] = fmt.Sprintf("%s: the source has no column %q any more", m.Field, foreign.Clip(m.Column, 100))
	}
	return &ColumnRefusal{
		Code:    CodeGone,
		Message: fmt.Sprintf("the source no longer has the column %q, which %s reads: bring the column back, or change the sync", foreign.Clip(missing[0].Column, 100), strings.TrimSuffix(missing[0].Field, ".from.data")),
		Detail:  strings.Join(lines, "\n"),
	}
}

// Unplanned is for a run that ends before it has made anything of the changes. The
// next one finds them again.
func (w *ColumnWatch) Unplanned(y *store.Sync) {
	w.columns = nil
	w.Describe(y, nil, nil)
}

// Describe reports how each change is handled. made are the mappings that the run has
// made for the object of its destination; nil, nil: it did not come so far.
func (w *ColumnWatch) Describe(y *store.Sync, object *api.DestinationObject, made []api.Mapping) {
	reads := mapping.Readings(&y.Config)
	for i := range w.Changes {
		change := &w.Changes[i]
		byClient := slices.ContainsFunc(reads, func(r mapping.Reading) bool { return r.Column == change.Column })
		to, wrote := generatedField(made, change.Column)
		_, was := generatedField(y.Generated, change.Column)
		w.remapped = w.remapped || wrote || was || byClient && change.Change == api.ColumnRetyped
		switch {
		case change.Handling != "":
		case change.Change == api.ColumnRemoved && byClient:
			change.Handling = "a mapping of the client reads it: the run fails"
		case object == nil:
			change.Handling = "the run failed before it came to it"
		case change.Change == api.ColumnRemoved && was:
			change.Handling = "its generated mapping is gone; the field keeps the values that it has"
		case change.Change == api.ColumnRemoved:
			change.Handling = "no mapping read it"
		case change.Change == api.ColumnRetyped && (byClient || wrote):
			change.Handling = "values are cast to the type of the field as before; what cannot be cast is an invalid record"
		case change.Change == api.ColumnRetyped:
			change.Handling = "no mapping reads it"
		case byClient:
			change.Handling = "a mapping of the client reads it"
		case wrote:
			change.Handling = fmt.Sprintf("mapped to the field %q", to)
		case !Followed(&y.Config):
			change.Handling = "not mapped: field_behavior is specific_properties"
		case ColumnPolicy(&y.Config) == api.SchemaIgnore && !slices.Contains(w.accepted, change.Column):
			change.Handling = "not mapped: schema_change_policy is ignore"
		case !object.AllowCustomFields:
			change.Handling = fmt.Sprintf("not mapped: the object %q has no field for it and creates none", object.FullName)
		default:
			change.Handling = "not mapped: its field is written by another mapping"
		}
	}
}

// generatedField is the field that a generated mapping writes a column to.
func generatedField(made []api.Mapping, column string) (to string, found bool) {
	text := string(api.Raw(column))
	for i := range made {
		if made[i].From.Type == api.FromColumn && string(made[i].From.Data) == text {
			return made[i].To, true
		}
	}
	return "", false
}

// changesText names changes in one line.
func changesText(changes []api.SchemaChange) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		parts[i] = fmt.Sprintf("%q %s", foreign.Clip(c.Column, 100), c.Change)
		if c.Change == api.ColumnRetyped {
			parts[i] += fmt.Sprintf(" from %s to %s", *c.Before, *c.After)
		}
	}
	return strings.Join(parts, ", ")
}

// BackfillReason is why a run sends everything again where changed columns have
// changed its mappings; "": they have not changed.
func (w *ColumnWatch) BackfillReason() string {
	if !w.remapped {
		return ""
	}
	return "the columns of the source have changed (" + changesText(w.Changes) + "), and the mappings with them"
}

// Log writes each change to the log of a run.
func (w *ColumnWatch) Log(log *slog.Logger) {
	for _, c := range w.Changes {
		log.Info("column of the source has changed", "column", c.Column, "change", c.Change,
			"type_before", api.Value(c.Before), "type_after", api.Value(c.After), "handling", c.Handling)
	}
}
