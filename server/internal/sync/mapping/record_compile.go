package mapping

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/liquid"
	"github.com/destkit/destkit/server/api"
)

// Compile makes the plan of one run from a configuration that Check accepts, the
// destination object as it is now and the columns of the source as they are now.
// The problems come from later changes: a column that is gone, a field that is
// gone, two columns that become one field. With problems there is no plan.
func Compile(c api.SyncConfig, object *api.DestinationObject, columns []api.Column, env Env) (*Plan, []api.Problem) {
	if object == nil {
		return nil, []api.Problem{{Field: "destination_attributes.object", Message: "the object is not known"}}
	}
	k := &compiler{
		config: &c, object: object, columns: columns, env: env, places: map[string]int{},
		plan: &Plan{keyStep: -1, limits: liquid.Limits{Now: env.Now}},
	}
	members := []*member{}
	// All mappings are looked at before the run gives up, so that a user mends
	// them in one go.
	for _, m := range k.mappings() {
		if one := k.member(m); one != nil {
			members = append(members, one)
		}
	}
	k.readAll(members)
	if len(k.problems) > 0 {
		return nil, k.problems
	}
	k.order(members)
	k.generateKey()
	for i := 0; i < len(members); {
		i = k.write(members, i, 0)
	}
	k.finish(members)
	return k.plan, nil
}

// compiler makes one plan.
type compiler struct {
	config   *api.SyncConfig
	object   *api.DestinationObject
	columns  []api.Column
	env      Env
	plan     *Plan
	places   map[string]int // of columns in the row
	problems []api.Problem
}

func (k *compiler) bad(field, format string, args ...any) {
	k.problems = append(k.problems, api.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// placed is a mapping and where a problem of it is shown.
type placed struct {
	*api.Mapping
	at string
}

// mappings are those of the client by position, then one for each
// column that none of them reads, where properties are added by themselves
// (spec 2.6, field_behavior).
func (k *compiler) mappings() []placed {
	var list []placed
	for i := range k.config.Mappings {
		list = append(list, placed{&k.config.Mappings[i], fmt.Sprintf("mappings[%d]", i)})
	}
	position := func(m placed) int64 {
		if m.Position == nil {
			return int64(len(list))
		}
		return *m.Position
	}
	slices.SortStableFunc(list, func(a, b placed) int { return cmp.Compare(position(a), position(b)) })
	if text(k.config.FieldBehavior) != api.BehaviorAllProperties {
		return list
	}
	read, written := map[string]bool{}, map[string]string{}
	for _, m := range list {
		written[m.To] = ""
		var name string
		if m.From.Type == api.FromColumn && json.Unmarshal(m.From.Data, &name) == nil {
			read[name] = true
		}
	}
	for i := range k.columns {
		column := k.columns[i].Name
		to := NormalizeName(column, text(k.config.FieldNormalization))
		field := k.object.Field(to)
		// Fields that cannot be created are left out: the run goes on with the other columns.
		if k.columns[i].Unmapped || field == nil && !k.object.AllowCustomFields {
			continue
		}
		// A required field is filled all the same: Check has promised that it
		// fills itself.
		if read[column] && (field == nil || !field.RequiredForMapping) {
			continue // under the name that the client chose
		}
		before, taken := written[to]
		switch {
		case taken && before == "":
			continue
		case taken:
			k.bad("field_normalization", "the columns %q and %q both become the field %q: choose another normalization, or map one of them",
				foreign.Clip(before, 80), foreign.Clip(column, 80), foreign.Clip(to, 80))
			continue
		}
		written[to] = column
		list = append(list, placed{
			&api.Mapping{From: api.MappingFrom{Type: api.FromColumn, Data: api.Raw(column)}, To: to, FollowSourceType: true},
			"field_behavior",
		})
	}
	return list
}

// Generated are the mappings that a sync of all properties has besides those
// of its client, in the form that is shown.
func Generated(c *api.SyncConfig, object *api.DestinationObject, columns []api.Column) []api.Mapping {
	k := &compiler{config: c, object: object, columns: columns}
	var out []api.Mapping
	for i, m := range k.mappings()[len(c.Mappings):] {
		made := *m.Mapping
		normalizeMapping(&made, int64(len(c.Mappings)+i))
		out = append(out, made)
	}
	return out
}

// WithoutGenerated are the mappings that a client has sent but for those that it
// has only sent back.
func WithoutGenerated(sent, generated []api.Mapping) []api.Mapping {
	return slices.DeleteFunc(slices.Clone(sent), func(m api.Mapping) bool {
		return m.FollowSourceType && !m.IsPrimaryIdentifier && slices.ContainsFunc(generated, func(g api.Mapping) bool {
			return g.To == m.To && g.From.Type == m.From.Type && string(g.From.Data) == string(m.From.Data)
		})
	})
}

// member is one mapping on its way into the plan.
type member struct {
	path    []string // the name, cut up where it is nested
	source  string   // the column, for the order of fields; "" none
	top     Field    // of path[0]
	step    planStep
	primary bool
	sorts   bool // keys come in the order of the column
	change  bool // the value differs from run to run
	about   string
}

// member compiles one mapping; nil after a problem.
func (k *compiler) member(m placed) *member {
	before := len(k.problems)
	one := &member{primary: m.IsPrimaryIdentifier, step: planStep{name: m.To, skipNull: m.SyncNullValues != nil && !*m.SyncNullValues}}
	kind := k.value(m, one)
	if len(k.problems) > before {
		return nil
	}
	k.target(m, one)
	if len(k.problems) > before {
		return nil
	}
	k.fit(m, one, kind)
	one.about = fmt.Sprintf("%q %q %s %s", one.path, m.From.Type, m.From.Data, text(m.LookupField))
	return one
}

// place gives a column its place in the row; false when the source has no such
// column.
func (k *compiler) place(name string) (int, bool) {
	// Several mappings may read one column; it is read once.
	if at, known := k.places[name]; known {
		return at, true
	}
	if !slices.ContainsFunc(k.columns, func(c api.Column) bool { return c.Name == name }) {
		return 0, false
	}
	k.places[name] = len(k.plan.columns)
	k.plan.columns = append(k.plan.columns, name)
	return k.places[name], true
}

func (k *compiler) columnNames() []string {
	names := make([]string, len(k.columns))
	for i := range k.columns {
		names[i] = k.columns[i].Name
	}
	return names
}

// value compiles where a mapping takes its value from and gives its kind.
func (k *compiler) value(m placed, one *member) api.Kind {
	at := m.at + ".from.data"
	switch m.From.Type {
	case api.FromColumn:
		var name string
		if json.Unmarshal(m.From.Data, &name) != nil {
			k.bad(at, "must be %s", dataShape[api.FromColumn])
			return api.KindAny
		}
		place, known := k.place(name)
		if !known {
			k.bad(at, "the source has no column %q%s", foreign.Clip(name, 80), didYouMean(name, k.columnNames()))
			return api.KindAny
		}
		one.source, one.step.kind, one.step.column = name, stepColumn, place
		return k.columns[slices.IndexFunc(k.columns, func(c api.Column) bool { return c.Name == name })].Kind
	case api.FromLiquid:
		one.step.kind = stepTemplate
		k.template(at, m, one)
		return api.KindString
	case api.FromConstant, api.FromSyncMetadata:
		one.step.kind = stepLiteral
		return k.constant(at, m, one)
	case api.FromSegmentMembership:
		return k.membership(at, m, one)
	}
	k.bad(m.at+".from.type", "values of type %q cannot be made", foreign.Clip(m.From.Type, 80))
	return api.KindAny
}

func (k *compiler) template(at string, m placed, one *member) {
	source, err := templateText(m.From.Data)
	if err == nil {
		one.step.template, err = liquid.Parse(source)
	}
	if err != nil {
		k.bad(at, "%v", err)
		return
	}
	for _, column := range one.step.template.Columns() {
		if _, known := k.place(column); !known {
			k.bad(at, "%v%s", liquid.UnknownColumn(foreign.Clip(column, 80)), didYouMean(column, k.columnNames()))
		}
	}
}

// constant gives the JSON of a value that is the same in all records.
func (k *compiler) constant(at string, m placed, one *member) api.Kind {
	switch m.From.Type {
	case api.FromConstant:
		var constant api.Constant
		if err := json.Unmarshal(m.From.Data, &constant); err != nil || len(bytes.TrimSpace(constant.Value)) == 0 {
			k.bad(at, "must be %s", dataShape[api.FromConstant])
			return api.KindAny
		}
		one.step.literal = bytes.TrimSpace(constant.Value)
		kind, _ := constantKind(constant.BasicType, one.step.literal)
		return kind
	case api.FromSyncMetadata:
		var name string
		_ = json.Unmarshal(m.From.Data, &name) // another shape is no name that is known
		ids := map[string]int64{MetadataRunID: k.env.RunID, MetadataSyncID: k.env.SyncID}
		id, known := ids[name]
		if !known {
			k.bad(at, "must be %s", dataShape[api.FromSyncMetadata])
		}
		one.step.literal, one.change = api.Raw(id), name == MetadataRunID
		return api.KindInteger
	}
	return api.KindAny
}
