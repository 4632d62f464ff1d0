package destination

import (
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// contactFields are the fields of the object that most checks look at: two
// identifiers, a required field, every type and an array.
const contactFields = `{"fields":[` +
	`{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false},` +
	`{"field_api_name":"contact_id","label":"Id","identifier":true,"required":true,"createable":true,"updateable":true,"type":"integer","array":false},` +
	`{"field_api_name":"last_name","label":"Last name","identifier":false,"required":true,"createable":true,"updateable":true,"type":"string","array":false},` +
	`{"field_api_name":"first_name","label":"First name","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":false},` +
	`{"field_api_name":"age","label":"Age","identifier":false,"required":false,"createable":true,"updateable":true,"type":"integer","array":false},` +
	`{"field_api_name":"score","label":"Score","identifier":false,"required":false,"createable":true,"updateable":true,"type":"float","array":false},` +
	`{"field_api_name":"balance","label":"Balance","identifier":false,"required":false,"createable":true,"updateable":true,"type":"decimal","array":false},` +
	`{"field_api_name":"active","label":"Active","identifier":false,"required":false,"createable":true,"updateable":true,"type":"boolean","array":false},` +
	`{"field_api_name":"born","label":"Born","identifier":false,"required":false,"createable":true,"updateable":true,"type":"date","array":false},` +
	`{"field_api_name":"seen","label":"Seen","identifier":false,"required":false,"createable":true,"updateable":true,"type":"date_time","array":false},` +
	`{"field_api_name":"tags","label":"Tags","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":true}]}`

const (
	orderFields = `{"fields":[` +
		`{"field_api_name":"order_no","label":"Number","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false},` +
		`{"field_api_name":"note","label":"Note","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":false}]}`
	bothObjects = `{"objects":[{"object_api_name":"contact","label":"Contact","can_create_fields":"on_write"},{"object_api_name":"order","label":"Order"}]}`
	usualSpeed  = `{"maximum_batch_size":200,"maximum_parallel_batches":4,"maximum_records_per_second":1000}`
)

// commonReplies are a conforming conversation; talks write down what differs.
var commonReplies = says{
	"test_connection":              gives(`{"success":true}`),
	"list_objects":                 gives(bothObjects),
	"list_fields:contact":          gives(contactFields),
	"list_fields:order":            gives(orderFields),
	"list_fields":                  failure(-32602, "no such object"),
	"supported_operations:contact": gives(`{"operations":["insert","update","upsert","mirror"]}`),
	"supported_operations:order":   gives(`{"operations":["upsert"]}`),
	"supported_operations":         failure(-32602, "no such object"),
	"get_sync_speed":               gives(usualSpeed),
	"sync_batch":                   results(acknowledged),

	"unknown":     failure(-32601, "Method not found"),
	"no JSON":     body(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`),
	"no envelope": failure(-32600, "Invalid Request"),
	"stranger":    failure(-32001, "Unauthorized").status(401),
	"cut":         broken(wire.KindCut),
	"plain":       broken(wire.KindRefused),
	"GET":         page(405, "Method Not Allowed").header("Content-Type", "text/plain"),
	"PUT":         page(405, "Method Not Allowed").header("Content-Type", "text/plain"),
	"DELETE":      page(405, "Method Not Allowed").header("Content-Type", "text/plain"),
}

// planningExchanges: test_connection, objects and operations.
var planningExchanges = map[string]exchange{
	"CON-002": {
		good: []talk{
			{says: says{"test_connection": gives(`{"success":false,"error_message":"database refuses connections"}`)}},
			{says: says{"test_connection": failure(-32000, "database refuses connections")}},
		},
		bad: []talk{
			{says: says{"test_connection": gives(`{"success":false,"error_message":""}`)}, finds: "no error_message"},
			{says: says{"test_connection": broken(wire.KindClosed)}, status: conformance.Inconclusive, finds: "was not answered"},
		},
	},

	"OBJ-001": {bad: []talk{
		{says: says{"list_objects": gives(`{"objects":[{"object_api_name":"","label":"Contact"}]}`)}, finds: `"object_api_name" in every object`},
	}},
	"OBJ-004": {
		good: []talk{{
			says: says{"list_objects": inTurn(gives(bothObjects),
				gives(`{"objects":[{"object_api_name":"order","label":"Order"},{"object_api_name":"contact","label":"Contact"}]}`))},
			notes: "the order of the objects changes",
		}},
	},
	"OBJ-005": {
		good: []talk{{says: says{"list_fields:contact": gives(grownFields)}, holds: []stored{asSent}}},
	},

	"OPS-001": {
		good: []talk{{says: says{"supported_operations": gives(`{"operations":["upsert","delete"]}`)}, notes: `lists "delete"`}},
	},

	"STA-001": {
		good: []talk{{
			hook: map[string]string{"alter_schema": `{"ok":true,"object":"order","field":"zz_new"}`},
			says: says{"list_fields:order": inTurn(gives(orderFields), gives(withField(`"zz_new"`)))},
		}},
	},
	"VER-001": {good: []talk{{notes: "protocol v1 with the profile v1"}}},
}

// grownFields are those of contact after a field was created on write.
var grownFields = strings.TrimSuffix(contactFields, "]}") + `,{"field_api_name":"zz_conf_` + scriptRun + `","label":"New","identifier":false,"required":false,` +
	`"createable":true,"updateable":true,"type":"string","array":false}]}`

// withField is list_fields of order with the note renamed.
func withField(name string) string { return strings.ReplaceAll(orderFields, `"note"`, name) }

// fieldOf is a list_fields result of one field.
func fieldOf(flags string) answer {
	return gives(`{"fields":[{"field_api_name":"order_no","label":"Number",` + flags + `}]}`)
}

// fieldExchanges: list_fields.
var fieldExchanges = map[string]exchange{
	"FLD-002": {bad: []talk{
		{says: says{"list_fields:order": gives(withField(`""`))}, finds: "empty name"},
	}},
	"FLD-004": {
		good: []talk{{says: says{"list_fields:order": gives(`{"fields":[]}`)}}}, // FLD-010 judges the empty list
	},
	"FLD-006": {bad: []talk{
		{
			says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":true`)},
			finds: "and no array",
		},
	}},
	"FLD-007": {
		good: []talk{{ // one identifier that can be written is enough
			says: says{"list_fields:order": gives(`{"fields":[` +
				`{"field_api_name":"id","label":"Id","identifier":true,"required":true,"createable":false,"updateable":true,"type":"integer","array":false},` +
				`{"field_api_name":"order_no","label":"Number","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}`)},
		}, { // nothing new is ever made where update is all
			says: says{
				"list_fields:order":          fieldOf(`"identifier":true,"required":true,"createable":false,"updateable":true,"type":"string","array":false`),
				"supported_operations:order": gives(`{"operations":["update"]}`),
			},
		}},
		bad: []talk{
			{
				says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":false,"updateable":true,"type":"string","array":false`)},
				finds: "createable true for",
			},
			{
				says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":false,"createable":false,"updateable":true,"type":"string","array":false`)},
				finds: "createable true for",
			},
			{
				says:  says{"list_fields:order": fieldOf(`"identifier":false,"required":true,"createable":false,"updateable":true,"type":"string","array":false`)},
				finds: "createable true for",
			},
		},
	},
	"FLD-010": {bad: []talk{
		{says: says{"list_fields:order": inTurn(gives(orderFields), gives(withField(`"remark"`)))}, finds: "now lists order_no, remark"},
		{
			says:  says{"list_fields:order": inTurn(gives(orderFields), gives(strings.Replace(orderFields, `"type":"string"`, `"type":"integer"`, 1)))},
			finds: "order_no has other types or flags",
		},
	}},
	"FLD-015": {bad: []talk{
		{says: says{"list_fields:order": inTurn(gives(orderFields), gives(withField(`"remark"`)))}, finds: "now lists order_no, remark"},
	}},
}
