package destsim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// DefaultPreset is the preset of a zero Config.
const DefaultPreset = "default"

// presets by name; each call makes a new value, so callers may change it.
var presets = map[string]func() Config{
	DefaultPreset: defaultPreset,
	"crm":         crmPreset,
	"events":      eventsPreset,
	"catalogue":   cataloguePreset,
}

// Presets lists the names that Config.Preset takes, sorted. Besides the
// named ones there is one per field type: "type-boolean", "type-decimal", …
func Presets() []string {
	names := []string{}
	for name := range presets {
		names = append(names, name)
	}
	for _, t := range rpc.FieldTypes() {
		names = append(names, "type-"+t)
	}
	slices.Sort(names)
	return names
}

// Preset gives the configuration of a preset.
func Preset(name string) (Config, error) {
	if make, ok := presets[name]; ok {
		return make(), nil
	}
	if t, ok := strings.CutPrefix(name, "type-"); ok && slices.Contains(rpc.FieldTypes(), t) {
		return typePreset(t), nil
	}
	return Config{}, fmt.Errorf("preset: unknown preset %q%s", name, didYouMean(name, Presets()))
}

var allOperations = []string{
	rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationMirror,
}

// declared adds the limits that the presets share: they are declared, and
// enforced only with Config.EnforceLimits.
func declared(objects ...ObjectConfig) Config {
	return Config{
		Objects:   objects,
		Speed:     rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1000000},
		RateLimit: 100000,
	}
}

// entity makes an object of a preset out of its name and its fields. A field is a name and
// a type: "email! string" is an identifier, "last_name* string" required, "tags string[]" an
// array. Labels say the same in words.
func entity(name string, operations []string, fields ...string) ObjectConfig {
	o := ObjectConfig{Name: name, Label: labelOf(name), Operations: slices.Clone(operations)}
	for _, text := range fields {
		name, typ, _ := strings.Cut(text, " ")
		f := FieldConfig{Identifier: strings.HasSuffix(name, "!"), Required: strings.ContainsAny(name, "!*")}
		f.Name, f.Unique = strings.TrimRight(name, "!*"), f.Identifier
		f.Type, f.Array = strings.CutSuffix(typ, "[]")
		f.Label = labelOf(f.Name)
		o.Fields = append(o.Fields, f)
	}
	return o
}

// labelOf is "Order ID" of order_id, and "Last name" of last_name.
func labelOf(name string) string {
	words := strings.Split(name, "_")
	if last := len(words) - 1; words[last] == "id" {
		words[last] = "ID"
	}
	label := strings.Join(words, " ")
	return strings.ToUpper(label[:1]) + label[1:]
}

// defaultPreset has all that the catalogue of checks looks at.
func defaultPreset() Config {
	return declared(
		entity("contact", allOperations, "email! string", "last_name* string", "first_name string", "age integer", "score float",
			"balance decimal", "subscribed boolean", "birth_date date", "last_seen_at date_time", "tags string[]", "lucky_numbers integer[]"),
		entity("order", allOperations, "order_number! string", "order_id! integer", "status string", "total decimal", "placed_at date_time"),
		eventObject(),
	)
}

// eventObject takes fields that it has never seen.
func eventObject() ObjectConfig {
	o := entity("event", []string{rpc.OperationInsert, rpc.OperationUpsert}, "event_id! string", "name string", "occurred_at date_time")
	o.CanCreateFields = true
	return o
}

// crmPreset is a small customer system with accounts, people and deals.
func crmPreset() Config {
	person := entity("person", allOperations, "email! string", "last_name* string", "first_name string", "account_domain string", "opted_in boolean", "birthday date")
	person.CanCreateFields = true
	return declared(
		entity("account", allOperations, "domain! string", "name* string", "employees integer", "annual_revenue decimal", "industries string[]"),
		person,
		entity("deal", []string{rpc.OperationUpsert, rpc.OperationUpdate}, "deal_id! integer", "stage* string", "amount decimal", "probability float", "closed_at date_time"),
	)
}

// eventsPreset only takes events in, as fast as they come.
func eventsPreset() Config {
	c := declared(eventObject())
	c.Speed = rpc.Speed{MaximumBatchSize: 5000, MaximumParallelBatches: 50, MaximumRecordsPerSecond: 5000000}
	return c
}

// typePreset has one object with one field of a type, alone and as an array.
func typePreset(t string) Config {
	return declared(entity("sample", allOperations, "id! string", "value "+t, "values "+t+"[]"))
}

// cataloguePreset has ten objects over every set of operations of use.
func cataloguePreset() Config {
	sets := [][]string{
		allOperations, {rpc.OperationUpsert}, {rpc.OperationInsert}, {rpc.OperationUpdate}, {rpc.OperationMirror},
		{rpc.OperationInsert, rpc.OperationUpdate}, {rpc.OperationUpsert, rpc.OperationMirror},
		{rpc.OperationInsert, rpc.OperationUpsert}, {rpc.OperationUpdate, rpc.OperationUpsert},
		{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert},
	}
	names := []string{"account", "contact", "lead", "ticket", "product", "invoice", "campaign", "visit", "store", "survey"}
	objects := make([]ObjectConfig, len(names))
	for i, name := range names {
		objects[i] = entity(name, sets[i], name+"_id! "+[]string{rpc.TypeString, rpc.TypeInteger}[i%2],
			"name string", "rank integer", "active boolean", "changed_at date_time", "labels string[]")
	}
	return declared(objects...)
}
