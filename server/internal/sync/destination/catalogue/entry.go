// Package catalogue describes the applications that destinations emulate: what clients see
// of each, what the simulator behind it keeps, and what its settings do. One file
// describes one application.
//
// It leaves to package destination how records are sent.
package catalogue

import (
	"cmp"
	"embed"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/server/api"
)

//go:embed *.yaml
var catalogueFiles embed.FS

// Entry describes one emulated application: what a client is told about it and
// what the simulator behind it keeps. Once it was checked, it is not changed.
type Entry struct {
	connector.Declared `yaml:",inline"`
	Account            account  `yaml:"account"`
	Objects            []Object `yaml:"objects"`
}

// account gives account_id and account_name of connection_details
// (spec 2.2): From names the credential that holds the id (of a URL its host),
// Or the one where From is left out. Name stands before it.
type account struct {
	From string `yaml:"from"`
	Or   string `yaml:"or"`
	Name string `yaml:"name"`
}

// Object is one destination object (spec 2.3).
type Object struct {
	FullName           string       `yaml:"full_name"`
	Label              string       `yaml:"label"`
	Operations         []string     `yaml:"operations"`
	ReadOnly           bool         `yaml:"read_only"` // can_be_sync_destination is false
	CaseSensitive      bool         `yaml:"case_sensitive_fields"`
	FieldOrdering      bool         `yaml:"field_ordering"`
	CustomFields       bool         `yaml:"custom_fields"`
	CustomFieldTypes   []customType `yaml:"custom_field_types"` // none: every type
	Upsert             Identifier   `yaml:"upsert"`
	Mirror             Identifier   `yaml:"mirror"`
	Audience           *audience    `yaml:"audience"`
	HiddenIdentifier   string       `yaml:"hidden_identifier"`
	Fields             []Field      `yaml:"fields"`
	AdvancedParameters []Parameter  `yaml:"advanced_configuration"`
}

type customType struct {
	Type  string `yaml:"type"`
	Array bool   `yaml:"array"`
}

// Identifier is a rule of primary_identifier_mapping_attributes.
type Identifier struct {
	Optional bool   `yaml:"optional"`
	Hide     bool   `yaml:"hide_destination_key"`
	Notes    string `yaml:"notes"`
}

// audience makes an object an audience: MatchPercent of all possible
// members are known to the application, 0 to 100.
type audience struct {
	MatchPercent int `yaml:"match_percent"`
}

// Field is one destination field (spec 2.5).
type Field struct {
	FullName       string   `yaml:"full_name"`
	Label          string   `yaml:"label"`
	Type           string   `yaml:"type"`
	Array          bool     `yaml:"array"`
	Required       bool     `yaml:"required"`
	NotCreateable  bool     `yaml:"not_createable"`
	NotUpdateable  bool     `yaml:"not_updateable"`
	Operations     []string `yaml:"operations"` // overwrite when left out
	PreserveValues bool     `yaml:"preserve_values"`
	Keys           []string `yaml:"keys"` // upsert, update, insert, reference
	LookupObject   string   `yaml:"lookup_object"`
}

// Parameter is one advanced configuration field (spec 2.4).
type Parameter struct {
	Name            string   `yaml:"name"`
	Type            string   `yaml:"type"`
	Label           string   `yaml:"label"`
	InputType       string   `yaml:"input_type"`
	Placeholder     string   `yaml:"placeholder"`
	Default         any      `yaml:"default"`
	Required        *bool    `yaml:"required"`
	SupportedValues []string `yaml:"supported_values"`
	Effect          string   `yaml:"effect"` // what it does: batch_size or stamp
	Field           string   `yaml:"field"`  // of a stamp
	Low             int64    `yaml:"low"`    // of an integer, with high; without it there is no bound
	High            int64    `yaml:"high"`
}

// BuiltIn are the entries of this package, in the order of their names. They are not
// changed.
func BuiltIn() []*Entry { return slices.Clone(builtIn()) }

var builtIn = sync.OnceValue(func() []*Entry { return connector.MustRead[Entry](catalogueFiles, "*.yaml") })

// Connector is what GET /connectors shows.
func (e *Entry) Connector(creatable bool) api.Connector {
	return api.Connector{
		DocumentationSlug: cmp.Or(e.DocumentationSlug, e.ServiceName), Label: e.Label, ServiceName: e.ServiceName,
		AuthenticationKind: "credentials", CreatableViaAPI: creatable, Emulated: true,
		ConfigurationFields: api.ConfigFields{Fields: connector.Configs(e.Credentials)},
	}
}

// Object finds an object by its full_name; nil when there is none.
func (e *Entry) Object(fullName string) *Object {
	for i := range e.Objects {
		if e.Objects[i].FullName == fullName {
			return &e.Objects[i]
		}
	}
	return nil
}

// Field finds a field by its full_name; nil for one that was created on write.
func (o *Object) Field(fullName string) *Field {
	for i := range o.Fields {
		if o.Fields[i].FullName == fullName {
			return &o.Fields[i]
		}
	}
	return nil
}

// EmulatedObject is one object that the store of an emulated destination must
// offer over the custom destination protocol.
type EmulatedObject struct {
	Object rpc.Object
	// Operations are of the protocol: upsert, insert, update, mirror.
	Operations []string
	// Fields hold at least one identifier.
	Fields []rpc.Field
}

// EmulatedObjects is the catalogue as the simulator must offer it.
func (e *Entry) EmulatedObjects() []EmulatedObject {
	list := make([]EmulatedObject, len(e.Objects))
	for i := range e.Objects {
		list[i] = e.Objects[i].emulated()
	}
	return list
}

// emulated translates an object: append is an insert under a separate
// identifier that clients never see.
func (o *Object) emulated() EmulatedObject {
	d := EmulatedObject{Object: rpc.Object{APIName: o.FullName, Label: o.Label}}
	if o.CustomFields {
		d.Object.CanCreateFields = rpc.CanCreateOnWrite
	}
	seen := map[string]bool{}
	for _, op := range o.Operations {
		if op == api.OperationAppend {
			op = rpc.OperationInsert
		}
		if !seen[op] {
			d.Operations = append(d.Operations, op)
		}
		seen[op] = true
	}
	if o.HiddenIdentifier != "" {
		d.Fields = append(d.Fields, rpc.Field{
			APIName: o.HiddenIdentifier, Label: o.HiddenIdentifier, Identifier: true, Createable: true,
			Updateable: true, Type: rpc.TypeString,
		})
	}
	d.Fields = append(d.Fields, o.ownWireFields()...)
	for _, f := range o.Fields {
		d.Fields = append(d.Fields, rpc.Field{
			APIName: f.FullName, Label: f.Label, Identifier: f.identifies(), Required: f.Required,
			Createable: !f.NotCreateable, Updateable: !f.NotUpdateable, Type: f.Type, Array: f.Array,
		})
	}
	return d
}
