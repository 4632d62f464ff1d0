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

// Presets lists the names that Config.Preset takes, sorted. Beside the named
// ones there is one per field type: "type-boolean", "type-decimal", …
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

// declared adds the limits that the presets share: they are told, and kept only
// with Config.EnforceLimits.
func declared(objects ...ObjectConfig) Config {
	return Config{
		Objects:   objects,
		Speed:     rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1000000},
		RateLimit: 100000,
	}
}

// identifier, required, optional and list are the four kinds of field that
// presets are made of.
func identifier(name, label, typ string) FieldConfig {
	return FieldConfig{Name: name, Label: label, Type: typ, Identifier: true, Required: true, Unique: true}
}

func required(name, label, typ string) FieldConfig {
	return FieldConfig{Name: name, Label: label, Type: typ, Required: true}
}

func optional(name, label, typ string) FieldConfig {
	return FieldConfig{Name: name, Label: label, Type: typ}
}

func list(name, label, typ string) FieldConfig {
	return FieldConfig{Name: name, Label: label, Type: typ, Array: true}
}

// defaultPreset has all that the catalogue of checks looks at.
func defaultPreset() Config {
	return declared(
		ObjectConfig{Name: "contact", Label: "Contact", Operations: slices.Clone(allOperations), Fields: []FieldConfig{
			identifier("email", "Email", rpc.TypeString),
			required("last_name", "Last name", rpc.TypeString),
			optional("first_name", "First name", rpc.TypeString),
			optional("age", "Age", rpc.TypeInteger),
			optional("score", "Score", rpc.TypeFloat),
			optional("balance", "Balance", rpc.TypeDecimal),
			optional("subscribed", "Subscribed", rpc.TypeBoolean),
			optional("birth_date", "Birth date", rpc.TypeDate),
			optional("last_seen_at", "Last seen at", rpc.TypeDateTime),
			list("tags", "Tags", rpc.TypeString),
			list("lucky_numbers", "Lucky numbers", rpc.TypeInteger),
		}},
		ObjectConfig{Name: "order", Label: "Order", Operations: slices.Clone(allOperations), Fields: []FieldConfig{
			identifier("order_number", "Order number", rpc.TypeString),
			identifier("order_id", "Order ID", rpc.TypeInteger),
			optional("status", "Status", rpc.TypeString),
			optional("total", "Total", rpc.TypeDecimal),
			optional("placed_at", "Placed at", rpc.TypeDateTime),
		}},
		eventObject(),
	)
}

// eventObject takes fields that it has never seen.
func eventObject() ObjectConfig {
	return ObjectConfig{
		Name: "event", Label: "Event", CanCreateFields: true,
		Operations: []string{rpc.OperationInsert, rpc.OperationUpsert},
		Fields: []FieldConfig{
			identifier("event_id", "Event ID", rpc.TypeString),
			optional("name", "Name", rpc.TypeString),
			optional("occurred_at", "Occurred at", rpc.TypeDateTime),
		},
	}
}

// crmPreset is a small customer system with accounts, people and deals.
func crmPreset() Config {
	return declared(
		ObjectConfig{Name: "account", Label: "Account", Operations: slices.Clone(allOperations), Fields: []FieldConfig{
			identifier("domain", "Domain", rpc.TypeString),
			required("name", "Name", rpc.TypeString),
			optional("employees", "Employees", rpc.TypeInteger),
			optional("annual_revenue", "Annual revenue", rpc.TypeDecimal),
			list("industries", "Industries", rpc.TypeString),
		}},
		ObjectConfig{Name: "person", Label: "Person", CanCreateFields: true, Operations: slices.Clone(allOperations), Fields: []FieldConfig{
			identifier("email", "Email", rpc.TypeString),
			required("last_name", "Last name", rpc.TypeString),
			optional("first_name", "First name", rpc.TypeString),
			optional("account_domain", "Account domain", rpc.TypeString),
			optional("opted_in", "Opted in", rpc.TypeBoolean),
			optional("birthday", "Birthday", rpc.TypeDate),
		}},
		ObjectConfig{Name: "deal", Label: "Deal", Operations: []string{rpc.OperationUpsert, rpc.OperationUpdate}, Fields: []FieldConfig{
			identifier("deal_id", "Deal ID", rpc.TypeInteger),
			required("stage", "Stage", rpc.TypeString),
			optional("amount", "Amount", rpc.TypeDecimal),
			optional("probability", "Probability", rpc.TypeFloat),
			optional("closed_at", "Closed at", rpc.TypeDateTime),
		}},
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
	return declared(ObjectConfig{Name: "sample", Label: "Sample", Operations: slices.Clone(allOperations), Fields: []FieldConfig{
		identifier("id", "ID", rpc.TypeString),
		optional("value", "Value", t),
		list("values", "Values", t),
	}})
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
		label := strings.ToUpper(name[:1]) + name[1:]
		objects[i] = ObjectConfig{Name: name, Label: label, Operations: slices.Clone(sets[i]), Fields: []FieldConfig{
			identifier(name+"_id", label+" ID", []string{rpc.TypeString, rpc.TypeInteger}[i%2]),
			optional("name", "Name", rpc.TypeString),
			optional("rank", "Rank", rpc.TypeInteger),
			optional("active", "Active", rpc.TypeBoolean),
			optional("changed_at", "Changed at", rpc.TypeDateTime),
			list("labels", "Labels", rpc.TypeString),
		}}
	}
	return declared(objects...)
}
