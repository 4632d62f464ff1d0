package catalogue

import (
	"strings"
	"testing"

	"github.com/destkit/destkit/internal/connector"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
)

// The least that an entry needs, to be spoilt line by line.
const smallEntry = `service_name: shop
label: Shop
documentation_slug: shop
account: {from: shop, name: Shop}
refuse: {credential: key, word: wrong}
credentials:
  - {id: key, label: Key, type: string, rules: [required], input_type: password, password: true}
  - {id: shop, label: Shop, input_type: text, type: string}
objects:
  - full_name: order
    label: Order
    operations: [upsert]
    fields:
      - {full_name: id, label: ID, type: string, keys: [upsert]}
    advanced_configuration:
      - {name: note, type: string, label: Note, input_type: text, effect: stamp, field: order_note}
`

func TestSmallEntry(t *testing.T) {
	e, err := connector.Read[Entry]("shop.yaml", []byte(smallEntry))
	require.NoError(t, err)
	require.Equal(t, "shop", e.ServiceName)
	require.Equal(t, "order", e.Objects[0].FullName)
}

// A mistake in a file is named with its place.
func TestEntryMistakes(t *testing.T) {
	cases := []struct{ name, old, replacement, want string }{
		{"unknown key", "    label: Order", "    lable: Order", "shop.yaml:11:5"},
		{"wrong type", "label: Shop", "label: [Shop]", "shop.yaml:2:8"},
		{"no name", "service_name: shop", `service_name: ""`, "service_name: must be a lower-case letter"},
		{"account", "{from: shop,", "{from: shup,", `account.from: "shup" is no credential`},
		{"account of a secret", "{from: shop,", "{from: key,", `account.from: "key" is no credential that can be shown`},
		{"placeholder", "rules: [required]", "matches: '^[0-9]+$', placeholder: x", "credentials[0].placeholder: does not match"},
		{"alias", "type: string, rules", "alias_of: kee, type: string, rules", `credentials[0].alias_of: "kee" is no other credential`},
		{"set", "objects:\n", "one_of: [[key]]\nobjects:\n", `one_of[0][0]: "key" is no credential that is optional`},
		{"refuse", "word: wrong", `word: ""`, "refuse: names a credential and a word"},
		{"credential type", "type: string, rules", "type: text, rules", `credentials[0].type: unknown value "text"`},
		{"input type", "input_type: password", "input_type: secret", "credentials[0].input_type"},
		{"dropdown", "input_type: password", "input_type: dropdown", "credentials[0].possible_values"},
		{"pattern", "rules: [required]", "matches: '('", "credentials[0].matches"},
		{"operation", "[upsert]\n", "[merge]\n", `objects[0].operations[0]: unknown value "merge"`},
		{"no operation", "operations: [upsert]", "operations: []", "objects[0].operations: must not be empty"},
		{"field type", "type: string, keys", "type: text, keys", "objects[0].fields[0].type"},
		{"array key", "keys: [upsert]", "array: true, keys: [upsert]", "objects[0].fields[0].keys: a key must be"},
		{"unknown key kind", "keys: [upsert]", "keys: [mirror]", "objects[0].fields[0].keys[0]"},
		{"no key", ", keys: [upsert]", "", "objects[0].fields: no field is a key"},
		{"merge", "keys: [upsert]", "keys: [upsert], operations: [merge]", "merge is for arrays"},
		{"lookup", "keys: [upsert]", "keys: [upsert], lookup_object: order", `lookup_object: "order" is no object with a reference key`},
		{"field twice", "    advanced_configuration:", "      - {full_name: id, label: ID, type: string}\n    advanced_configuration:", `objects[0].fields[1].full_name: "id" stands twice`},
		{"match percent", "    operations:", "    audience: {match_percent: 101}\n    operations:", "objects[0].audience.match_percent"},
		{"custom type", "    operations:", "    custom_field_types: [{type: x}]\n    operations:", "objects[0].custom_field_types[0].type"},
		{"advanced without effect", "effect: stamp, field: order_note", "placeholder: x", "objects[0].advanced_configuration[0].effect"},
		{"unknown effect", "effect: stamp", "effect: colour", "objects[0].advanced_configuration[0].effect"},
		{"effect of another type", "effect: stamp, field: order_note", "effect: batch_size", "objects[0].advanced_configuration[0].effect"},
		{"stamp without field", ", field: order_note", "", "objects[0].advanced_configuration[0].field"},
		{"stamp on a field", "field: order_note", "field: id", "objects[0].advanced_configuration"},
		{"bounds of a text", "field: order_note", "field: order_note, low: 1, high: 2", "objects[0].advanced_configuration[0].low"},
		{"advanced type", "type: string, label: Note", "type: date, label: Note", "objects[0].advanced_configuration[0].type"},
		{"advanced values", "label: Note,", "label: Note, supported_values: [a],", "supported_values"},
		{"default of another type", "label: Note,", "label: Note, default: 7,", "objects[0].advanced_configuration[0].default"},
		{"default a list", "label: Note,", "label: Note, default: [],", "objects[0].advanced_configuration[0].default"},
		{"default not offered", "input_type: text, effect", "input_type: dropdown, supported_values: [a], default: b, effect", `default: "b" does not fit`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, smallEntry, c.old)
			_, err := connector.Read[Entry]("shop.yaml", []byte(strings.Replace(smallEntry, c.old, c.replacement, 1)))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "shop.yaml")
		})
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(smallEntry)
	f.Add("objects: [{fields: [{}], advanced_configuration: [{default: {}}]}]")
	f.Fuzz(func(t *testing.T, src string) {
		if e, err := connector.Read[Entry]("x.yaml", []byte(src)); err == nil {
			config := destsim.Config{}
			for _, o := range e.EmulatedObjects() {
				config.Objects = append(config.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
			}
			_, err := destsim.New(config)
			require.NoError(t, err)
		}
	})
}
