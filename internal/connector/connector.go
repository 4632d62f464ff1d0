// Package connector owns what the types of sources and of destinations that are
// declared as data have alike: the fields of their credentials, the rules that
// a single field cannot express, and how a lenient service reads what a client
// sends for a field.
//
// It refuses to know the two catalogues, the offers of a type, and
// where credentials are kept. No message of it holds a value.
package connector

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Types of a configuration field.
const (
	String  = "string"
	Integer = "integer"
	Boolean = "boolean"
	Object  = "object"
	Array   = "array"
)

// Required is the rule of a field that must be there and not be empty.
const Required = "required"

// ServiceAccount is the format of a key file: an object, or its text.
const ServiceAccount = "service_account"

// Field is one configuration field as a catalogue writes it (spec 2.10).
type Field struct {
	ID             string   `yaml:"id"`
	Label          string   `yaml:"label"`
	Type           string   `yaml:"type"`
	Rules          []string `yaml:"rules"`
	InputType      string   `yaml:"input_type"`
	Placeholder    string   `yaml:"placeholder"`
	Matches        string   `yaml:"matches"`
	Password       bool     `yaml:"password"`
	PossibleValues []string `yaml:"possible_values"`
	ReadMore       string   `yaml:"read_more"`
	Hint           string   `yaml:"hint"`
	AliasOf        string   `yaml:"alias_of"`    // another spelling of the field with this id
	RequiredIf     string   `yaml:"required_if"` // the id of a boolean: required where that is true
	Format         string   `yaml:"format"`      // service_account, or nothing
	Default        any      `yaml:"default"`     // what the details show while the field is left out
}

// Config is the field as clients see it.
func (f *Field) Config() api.ConfigField {
	config := api.ConfigField{
		ID: f.ID, Rules: api.Rules{Words: f.Rules}, Label: f.Label, Type: f.Type, Placeholder: f.Placeholder,
		Matches: f.Matches, IsPasswordTypeField: f.Password, PossibleValues: f.PossibleValues,
		ReadMore: f.ReadMore, Hint: f.Hint, InputType: f.InputType,
	}
	if config.Rules.Words == nil {
		config.Rules.Words = []string{}
	}
	if config.PossibleValues == nil {
		config.PossibleValues = []string{}
	}
	return config
}

// Configs are all fields as clients see them.
func Configs(fields []Field) []api.ConfigField {
	configs := []api.ConfigField{}
	for i := range fields {
		configs = append(configs, fields[i].Config())
	}
	return configs
}

// Find finds a field by its id; nil when there is none.
func Find(fields []Field, id string) *Field {
	for i := range fields {
		if fields[i].ID == id {
			return &fields[i]
		}
	}
	return nil
}

// Refuse is the value of a credential that every emulation of a type refuses, so
// that a client can see a connection fail.
type Refuse struct {
	Credential string   `yaml:"credential"`
	Or         []string `yaml:"or"` // others that the same word fails
	Word       string   `yaml:"word"`
}

// Refused names the credential that holds the word; "" when none does. Of a key
// file it is the private key that counts.
func (r Refuse) Refused(credentials map[string]Raw) string {
	for _, id := range append([]string{r.Credential}, r.Or...) {
		if value := Text(credentials[id]); r.Word != "" && value == r.Word {
			return id
		}
		if key, err := readAccount(credentials[id]); err == nil && r.Word != "" && key.PrivateKey == r.Word {
			return id
		}
	}
	return ""
}

// Declared is what every type of a catalogue has: its names, and its rules for
// credentials.
type Declared struct {
	ServiceName       string     `yaml:"service_name"`
	Label             string     `yaml:"label"`
	DocumentationSlug string     `yaml:"documentation_slug"` // one made of the name when left out
	Refuse            Refuse     `yaml:"refuse"`
	Credentials       []Field    `yaml:"credentials"`
	OneOf             [][]string `yaml:"one_of"` // sets of credentials, of which one must be complete
}

// Problems collects the problems of a declaration, each with its place in it, such as
// credentials[2].type.
type Problems []api.Problem

// Add notes one problem.
func (p *Problems) Add(place, format string, args ...any) {
	*p = append(*p, api.Problem{Field: place, Message: fmt.Sprintf(format, args...)})
}

// OneOf notes a word that is none of the known ones, and lists these.
func (p *Problems) OneOf(place, value string, known ...string) {
	if !slices.Contains(known, value) {
		p.Add(place, "unknown value %q; use one of %s", value, strings.Join(known, ", "))
	}
}

// Check looks at what decoding cannot see.
func (d *Declared) Check() (found Problems) {
	if !identifier.MatchString(d.ServiceName) {
		found.Add("service_name", notIdentifier)
	}
	if d.Label == "" {
		found.Add("label", "must not be empty")
	}
	known := map[string]bool{}
	for i := range d.Credentials {
		place := fmt.Sprintf("credentials[%d]", i)
		d.Credentials[i].check(d.Credentials, place, &found)
		if id := d.Credentials[i].ID; known[id] {
			found.Add(place+".id", "%q occurs twice", id)
		} else {
			known[id] = true
		}
	}
	if !known[d.Refuse.Credential] || d.Refuse.Word == "" {
		found.Add("refuse", "names a credential and a word")
	}
	for i, id := range d.Refuse.Or {
		if !known[id] {
			found.Add(fmt.Sprintf("refuse.or[%d]", i), "%q is no credential", id)
		}
	}
	for i, set := range d.OneOf {
		if len(set) == 0 {
			found.Add(fmt.Sprintf("one_of[%d]", i), "must not be empty")
		}
		for j, id := range set {
			if f := Find(d.Credentials, id); f == nil || f.AliasOf != "" || slices.Contains(f.Rules, Required) {
				found.Add(fmt.Sprintf("one_of[%d][%d]", i, j), "%q is no credential that is optional by itself", id)
			}
		}
	}
	return found
}

// Example gives credentials that pass the checks of the type: the required ones,
// with placeholders.
func (d *Declared) Example() map[string]Raw {
	wanted := map[string]bool{}
	for _, f := range d.Credentials {
		wanted[f.ID] = slices.Contains(f.Rules, Required)
	}
	if len(d.OneOf) > 0 {
		for _, id := range d.OneOf[0] {
			wanted[id] = true
		}
	}
	example := map[string]Raw{}
	for _, f := range d.Credentials {
		if wanted[f.ID] {
			example[f.ID] = f.example()
		}
	}
	return example
}

// example is a value that the field takes.
func (f *Field) example() Raw {
	text := f.Placeholder
	if len(f.PossibleValues) > 0 {
		text = f.PossibleValues[0]
	}
	switch {
	case f.Format == ServiceAccount:
		return api.Raw(map[string]string{"type": ServiceAccount, "project_id": "example", "private_key": "anything", "client_email": "sync@example.com"})
	case f.Type == Integer && text == "":
		return Raw("1")
	case f.Type == Integer:
		return Raw(text)
	case f.Type == Boolean:
		return Raw("true")
	case f.Type == Object:
		return Raw("{}")
	case text == "":
		text = "anything"
	}
	return api.Raw(text)
}

// identifier is what the name of a type and the id of a field look like.
var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

const notIdentifier = "must be a lower-case letter, followed by up to 62 of a-z, 0-9 and _"

// check keeps the promise of spec 2.10 to clients: a type they can render, a
// pattern that compiles, values to choose from exactly where a list is shown.
func (f *Field) check(all []Field, place string, found *Problems) {
	if !identifier.MatchString(f.ID) {
		found.Add(place+".id", notIdentifier)
	}
	if f.Label == "" {
		found.Add(place+".label", "must not be empty")
	}
	found.OneOf(place+".type", f.Type, String, Integer, Boolean, Object)
	found.OneOf(place+".input_type", f.InputType, "text", "textarea", "password", "number", "dropdown", "checkbox")
	for i, rule := range f.Rules {
		found.OneOf(fmt.Sprintf("%s.rules[%d]", place, i), rule, Required)
	}
	if pattern, err := regexp.Compile(f.Matches); err != nil {
		found.Add(place+".matches", "%v", err)
	} else if f.Placeholder != "" && !pattern.MatchString(f.Placeholder) {
		found.Add(place+".placeholder", "does not match %s: the field would refuse it", f.Matches)
	}
	if (f.InputType == "dropdown") != (len(f.PossibleValues) > 0) {
		found.Add(place+".possible_values", "stand with input_type dropdown, and only there")
	}
	if of := Find(all, f.AliasOf); f.AliasOf != "" && (of == nil || of.AliasOf != "" || of.Type != f.Type || of.Password != f.Password) {
		found.Add(place+".alias_of", "%q is no other credential of the same type", f.AliasOf)
	}
	if flag := Find(all, f.RequiredIf); f.RequiredIf != "" && (flag == nil || flag.Type != Boolean) {
		found.Add(place+".required_if", "%q is no credential of type boolean", f.RequiredIf)
	}
	if f.Format != "" && (f.Format != ServiceAccount || f.Type != Object) {
		found.Add(place+".format", "is service_account on a field of type object, or is left out")
	}
	if f.Password && f.Default != nil {
		found.Add(place+".default", "does not go with password: a secret is never shown")
	}
	if !fits(f.Type, f.Default) {
		found.Add(place+".default", "does not fit the type %s", f.Type)
	}
}

// fits reports whether a default is a value of the type; none fits always.
func fits(typ string, value any) bool {
	switch value.(type) {
	case nil:
		return true
	case string:
		return typ == String
	case bool:
		return typ == Boolean
	case int, int64, uint64:
		return typ == Integer
	}
	return false
}
