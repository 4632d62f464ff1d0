package source

import (
	"context"
	"regexp"
	"slices"

	"github.com/destkit/destkit/server/api"
)

// Description is a type of source with what the service must know of it.
type Description struct {
	api.SourceType
	Streaming         bool // its objects are topics
	StreamingDatabase bool // live syncs read it (spec 2.6, sync_behavior_family)
	Emulated          bool // kept by this package, nobody outside is called
	File              bool // reads files of this machine
	SQL               bool // datasets and models can be made on it
}

// sourceType is a Description with the code behind it.
type sourceType struct {
	Description
	open    func(context.Context, *sourceType, settings, Options) (Source, error)
	steps   func(*sourceType, settings, Options) *probe
	check   func(settings) []api.Problem // what single fields cannot say; nil: nothing
	matches map[string]*regexp.Regexp    // compiled from the fields
	dialect *warehouseDialect            // of an emulated type
}

// field finds a configuration field; nil when there is none.
func (t *sourceType) field(id string) *api.ConfigField {
	fields := t.ConfigurationFields.Fields
	for i := range fields {
		if fields[i].ID == id {
			return &fields[i]
		}
	}
	return nil
}

var (
	types     map[string]*sourceType // by service_name
	typeOrder []string
)

func init() { // a composite literal would refer to itself through open
	for _, t := range []*sourceType{
		sqliteType(), postgresType(),
		fileType("csv", "CSV", csvFormat{}),
		fileType("jsonl", "JSON lines", jsonlFormat{}),
		fileType("parquet", "Parquet", parquetFormat{}),
		generatorType(), topicType(),
		snowflakeType(), bigqueryType(), materializeType(),
	} {
		if types == nil {
			types = map[string]*sourceType{}
		}
		t.matches = map[string]*regexp.Regexp{}
		for _, f := range t.ConfigurationFields.Fields {
			if f.Matches != "" {
				t.matches[f.ID] = regexp.MustCompile(f.Matches)
			}
		}
		types[t.ServiceName] = t
		typeOrder = append(typeOrder, t.ServiceName)
	}
}

// Types lists the types of sources in a fixed order (spec 2.10). What is
// returned is the caller's own.
func Types() []api.SourceType {
	out := make([]api.SourceType, len(typeOrder))
	for i, name := range typeOrder {
		d, _ := Type(name)
		out[i] = d.SourceType
	}
	return out
}

// Type describes one type of source by its service_name.
func Type(name string) (Description, bool) {
	t, ok := types[name]
	if !ok {
		return Description{}, false
	}
	d := t.Description
	d.SupportedSyncEngines = slices.Clone(d.SupportedSyncEngines)
	d.ConfigurationFields.Fields = slices.Clone(d.ConfigurationFields.Fields)
	return d, true
}

// required is the one rule of a field: it must be there and not be empty.
const required = "required"

// Types of a configuration field.
const (
	fieldText    = "string"
	fieldInteger = "integer"
	fieldObject  = "object"
	fieldArray   = "array"
)

// describe fills what all types have alike (spec 2.10).
func describe(name, label string, fields ...api.ConfigField) Description {
	for i := range fields {
		f := &fields[i]
		if f.PossibleValues == nil {
			f.PossibleValues = []string{}
		}
		if f.Rules.Words == nil {
			f.Rules.Words = []string{}
		}
	}
	if fields == nil {
		fields = []api.ConfigField{}
	}
	return Description{SourceType: api.SourceType{
		DocumentationSlug:    "sources/" + name,
		Label:                label,
		ServiceName:          name,
		SupportedSyncEngines: []string{api.EngineBasic},
		CreatableViaAPI:      true,
		ConfigurationFields:  api.ConfigFields{Fields: fields},
	}}
}

// text is a required text field of one line.
func text(id, label, placeholder, hint string) api.ConfigField {
	return api.ConfigField{
		ID: id, Label: label, Type: fieldText, InputType: "text",
		Placeholder: placeholder, Hint: hint, Rules: api.Rules{Words: []string{required}},
	}
}

// password is a required field that is never shown again.
func password(hint string) api.ConfigField {
	f := text("password", "Password", "", hint)
	f.IsPasswordTypeField, f.InputType = true, "password"
	return f
}

// optional takes the rule away.
func optional(f api.ConfigField) api.ConfigField {
	f.Rules.Words = nil
	return f
}

// matching adds a pattern.
func matching(f api.ConfigField, pattern string) api.ConfigField {
	f.Matches = pattern
	return f
}

// Patterns of fields. A host is a name, an address, or the folder of a Unix
// socket; a comma would make several hosts of it.
const (
	hostPattern = `^(/[^\x00-\x1f,]*|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+)$`
	namePattern = `^[^\x00-\x1f]+$`
	portPattern = `^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
)

// hostField is the field of a server's name.
func hostField() api.ConfigField {
	return matching(text("host", "Host", "db.example.com", "A host name, an address, or the folder of a Unix socket."), hostPattern)
}

// portField is the field of a port with its usual number.
func portField(number string) api.ConfigField {
	f := optional(text("port", "Port", number, "1 to 65535; "+number+" when left out."))
	f.Type, f.InputType, f.Matches = fieldInteger, "number", portPattern
	return f
}
