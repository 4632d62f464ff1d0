package destination

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/server/api"
)

//go:embed catalogue/*.yaml
var catalogueFiles embed.FS

// Entry describes one emulated application: what a client is told about it and
// what the simulator behind it keeps. Once it was checked, it is not changed.
type Entry struct {
	ServiceName       string            `yaml:"service_name"`
	Label             string            `yaml:"label"`
	DocumentationSlug string            `yaml:"documentation_slug"` // the name when left out
	Account           accountEntry      `yaml:"account"`
	Refuse            connector.Refuse  `yaml:"refuse"`
	Credentials       []connector.Field `yaml:"credentials"`
	OneOf             [][]string        `yaml:"one_of"` // sets of credentials, of which one must be complete
	Objects           []objectEntry     `yaml:"objects"`
}

// accountEntry gives account_id and account_name of connection_details
// (spec 2.2): From names the credential that holds the id (of a URL its host),
// Or the one where From is left out. Name stands before it.
type accountEntry struct {
	From string `yaml:"from"`
	Or   string `yaml:"or"`
	Name string `yaml:"name"`
}

// objectEntry is one destination object (spec 2.3).
type objectEntry struct {
	FullName           string            `yaml:"full_name"`
	Label              string            `yaml:"label"`
	Operations         []string          `yaml:"operations"`
	ReadOnly           bool              `yaml:"read_only"` // can_be_sync_destination is false
	CaseSensitive      bool              `yaml:"case_sensitive_fields"`
	FieldOrdering      bool              `yaml:"field_ordering"`
	CustomFields       bool              `yaml:"custom_fields"`
	CustomFieldTypes   []customTypeEntry `yaml:"custom_field_types"` // none: every type
	Upsert             identifierEntry   `yaml:"upsert"`
	Mirror             identifierEntry   `yaml:"mirror"`
	Audience           *audienceEntry    `yaml:"audience"`
	HiddenIdentifier   string            `yaml:"hidden_identifier"`
	Fields             []fieldEntry      `yaml:"fields"`
	AdvancedParameters []advancedEntry   `yaml:"advanced_configuration"`
}

type customTypeEntry struct {
	Type  string `yaml:"type"`
	Array bool   `yaml:"array"`
}

// identifierEntry is a rule of primary_identifier_mapping_attributes.
type identifierEntry struct {
	Optional bool   `yaml:"optional"`
	Hide     bool   `yaml:"hide_destination_key"`
	Notes    string `yaml:"notes"`
}

// audienceEntry makes an object an audience: MatchPercent of all possible
// members are known to the application, 0 to 100.
type audienceEntry struct {
	MatchPercent int `yaml:"match_percent"`
}

// fieldEntry is one destination field (spec 2.5).
type fieldEntry struct {
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

// advancedEntry is one advanced configuration field (spec 2.4).
type advancedEntry struct {
	Name            string   `yaml:"name"`
	Type            string   `yaml:"type"`
	Label           string   `yaml:"label"`
	InputType       string   `yaml:"input_type"`
	Placeholder     string   `yaml:"placeholder"`
	Default         any      `yaml:"default"`
	Required        *bool    `yaml:"required"`
	SupportedValues []string `yaml:"supported_values"`
	Effect          string   `yaml:"effect"` // what it does: see settings.go
	Field           string   `yaml:"field"`  // of a stamp
	Low             int64    `yaml:"low"`    // of an integer, with high; without it there is no bound
	High            int64    `yaml:"high"`
}

// catalogue is what the embedded files say, read once for a process; nobody
// changes it.
var catalogue = sync.OnceValue(mustCatalogue)

// mustCatalogue reads the embedded files, in the order of their names.
func mustCatalogue() []*Entry {
	list, err := catalogueFiles.ReadDir("catalogue")
	if err != nil {
		panic(fmt.Sprintf("read embedded catalogue: %v", err))
	}
	var entries []*Entry
	for _, file := range list {
		name := path.Join("catalogue", file.Name())
		src, err := catalogueFiles.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("read embedded catalogue: %v", err))
		}
		e, err := readEntry(name, src)
		if err != nil {
			panic(fmt.Sprintf("read embedded catalogue: %v", err))
		}
		entries = append(entries, e)
	}
	return entries
}

// readEntry decodes one file strictly and checks what it says.
func readEntry(file string, src []byte) (*Entry, error) {
	e := &Entry{}
	if err := yamldoc.Decode(file, src, e); err != nil {
		return nil, err
	}
	var failures []error
	for _, problem := range e.Check() {
		failures = append(failures, fmt.Errorf("%s: %s: %s", file, problem.Field, problem.Message))
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return e, nil
}

// connector is what GET /connectors shows.
func (e *Entry) connector(creatable bool) api.Connector {
	return api.Connector{
		DocumentationSlug: cmp.Or(e.DocumentationSlug, e.ServiceName), Label: e.Label, ServiceName: e.ServiceName,
		AuthenticationKind: "credentials", CreatableViaAPI: creatable, Emulated: true,
		ConfigurationFields: api.ConfigFields{Fields: connector.Configs(e.Credentials)},
	}
}

// declared is what the entry says about credentials.
func (e *Entry) declared() connector.Declared {
	return connector.Declared{Fields: e.Credentials, OneOf: e.OneOf, Refuse: e.Refuse}
}

// object finds an object by its full_name; nil when there is none.
func (e *Entry) object(fullName string) *objectEntry {
	for i := range e.Objects {
		if e.Objects[i].FullName == fullName {
			return &e.Objects[i]
		}
	}
	return nil
}

// field finds a field by its full_name; nil for one that was created on write.
func (o *objectEntry) field(fullName string) *fieldEntry {
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

// emulatedObjects is the catalogue as the simulator must offer it.
func (e *Entry) emulatedObjects() []EmulatedObject {
	list := make([]EmulatedObject, len(e.Objects))
	for i := range e.Objects {
		list[i] = e.Objects[i].emulated()
	}
	return list
}

// emulated translates an object: append is an insert under an identifier of its
// own, that clients never see.
func (o *objectEntry) emulated() EmulatedObject {
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
