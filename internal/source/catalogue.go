package source

import (
	"context"
	"embed"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/source/internal/fileformat"
	"github.com/destkit/destkit/server/api"
)

// Description is a type of source with what the service must know of it.
type Description struct {
	api.SourceType
	Streaming         bool // its objects are topics
	StreamingDatabase bool // live syncs read it (spec 2.6, sync_behavior_family)
	Emulated          bool // kept by this package, without a call to the outside
	File              bool // reads files of this machine
	SQL               bool // datasets and models can be made on it
	Inferred          bool // the types of columns are those of the first rows, and change with them
}

// sourceType is a Description with the code behind it.
type sourceType struct {
	Description
	open func(context.Context, *sourceType, settings, Options) (Source, error)
	// unopened makes a source whose describe opens it; nil: open and Columns do.
	unopened func(settings, Options) describer
	steps    func(*sourceType, settings, Options) *probe
	check    func(settings) []api.Problem // rules across fields; nil: none
	matches  map[string]*regexp.Regexp    // compiled from the fields
	entry    *Entry                       // of an emulated type
	dialect  *warehouseDialect            // likewise
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

// Catalogue is the types of sources that a service knows: those of this package,
// and the declared ones. It is never changed.
type Catalogue struct {
	types map[string]*sourceType // by service_name, and by other spellings of it
	order []string
}

//go:embed catalogue/*.yaml
var catalogueFiles embed.FS

// BuiltIn are the types of this package: those with separate code first. They are
// read at first use, which most commands never need.
func BuiltIn() *Catalogue { return builtIn() }

var builtIn func() *Catalogue

func init() { builtIn = sync.OnceValue(readBuiltIn) } // as a value it would refer to itself through open

func readBuiltIn() *Catalogue {
	c := &Catalogue{types: map[string]*sourceType{}}
	for _, t := range []*sourceType{
		sqliteType(), postgresType(),
		fileType("csv", "CSV", fileformat.CSV{}),
		fileType("jsonl", "JSON lines", fileformat.JSONLines{}),
		fileType("parquet", "Parquet", fileformat.Parquet{}),
		generatorType(), topicType(),
	} {
		t.compile()
		c.add(t)
	}
	for _, e := range connector.MustRead[Entry](catalogueFiles, "catalogue/*.yaml") {
		c.add(e.sourceType())
	}
	return c
}

// compile makes the patterns of the fields.
func (t *sourceType) compile() {
	t.matches = map[string]*regexp.Regexp{}
	for _, f := range t.ConfigurationFields.Fields {
		if f.Matches != "" {
			t.matches[f.ID] = regexp.MustCompile(f.Matches)
		}
	}
}

// add puts a type at the end.
func (c *Catalogue) add(t *sourceType) {
	c.types[t.ServiceName] = t
	c.order = append(c.order, t.ServiceName)
	if t.entry != nil {
		for _, alias := range t.entry.Aliases {
			c.types[alias] = t
		}
	}
}

// Emulated are the warehouses of this package, in the order of their names.
func Emulated() (entries []*Entry) {
	c := BuiltIn()
	for _, name := range c.order {
		if e := c.types[name].entry; e != nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// With is a catalogue that has other types, too. Their entries have passed Check,
// and their names are none of those that are there.
func (c *Catalogue) With(entries ...*Entry) *Catalogue {
	with := &Catalogue{types: maps.Clone(c.types), order: slices.Clone(c.order)}
	for _, e := range entries {
		with.add(e.sourceType())
	}
	return with
}

// Types lists the types of sources in a fixed order (spec 2.10). The
// caller owns the result.
func (c *Catalogue) Types() []api.SourceType {
	out := make([]api.SourceType, len(c.order))
	for i, name := range c.order {
		d, _ := c.Type(name)
		out[i] = d.SourceType
	}
	return out
}

// Type describes one type of source by its service_name, or by another spelling
// of it.
func (c *Catalogue) Type(name string) (Description, bool) {
	t, ok := c.types[name]
	if !ok {
		return Description{}, false
	}
	d := t.Description
	d.SupportedSyncEngines = slices.Clone(d.SupportedSyncEngines)
	d.ConfigurationFields.Fields = slices.Clone(d.ConfigurationFields.Fields)
	return d, true
}

// Name is the service_name of a type for any spelling of it; a name that is not
// known stays as it is.
func (c *Catalogue) Name(name string) string {
	if t, ok := c.types[name]; ok {
		return t.ServiceName
	}
	return name
}

// Type is one of the built-in catalogue.
func Type(name string) (Description, bool) { return BuiltIn().Type(name) }

// required is the one rule of a field: it must be there and not be empty.
const required = connector.Required

// Types of a configuration field.
const (
	fieldText    = connector.String
	fieldInteger = connector.Integer
	fieldBoolean = connector.Boolean
	fieldObject  = connector.Object
	fieldArray   = connector.Array
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
