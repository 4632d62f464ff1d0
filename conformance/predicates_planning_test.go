package conformance

import (
	"strings"

	"github.com/destkit/destkit/conformance/wire"
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
	"CON-001": {bad: []talk{
		{says: says{"test_connection": gives(`{}`)}, finds: `"success" as true or false`},
		{says: says{"test_connection": gives(`{"success":"true"}`)}, finds: `"success" as true or false`},
		{says: says{"test_connection": gives(`{"success":1}`)}, finds: `"success" as true or false`},
	}},
	"CON-002": {
		good: []talk{
			{says: says{"test_connection": gives(`{"success":false,"error_message":"database refuses connections"}`)}},
			{says: says{"test_connection": failure(-32000, "database refuses connections")}},
		},
		bad: []talk{
			{finds: "success false with an error_message"},
			{says: says{"test_connection": gives(`{"success":false,"error_message":""}`)}, finds: "no error_message"},
		},
	},
	"CON-003": {bad: []talk{{
		says: says{"test_connection": inTurn(gives(`{"success":true}`), gives(`{"success":true}`),
			gives(`{"success":false,"error_message":"already connected"}`), gives(`{"success":true}`))},
		finds: "already connected",
	}}},
	"CON-004": {bad: []talk{{says: says{"test_connection": failure(-32602, "missing parameter")}, finds: "missing parameter"}}},
	"CON-005": {bad: []talk{{says: says{"list_objects": failure(-32602, "missing parameter")}, finds: "missing parameter"}}},

	"OBJ-001": {bad: []talk{
		{says: says{"list_objects": gives(`{"objects":[{"object_api_name":"contact"}]}`)}, finds: `"label" in every object`},
		{says: says{"list_objects": gives(`{"objects":[{"object_api_name":"","label":"Contact"}]}`)}, finds: `"object_api_name" in every object`},
		{says: says{"list_objects": gives(`{"objects":{"contact":"Contact"}}`)}, finds: `the array "objects"`},
	}},
	"OBJ-002": {bad: []talk{{says: says{"list_objects": gives(`{"objects":[]}`)}, finds: "the list is empty"}}},
	"OBJ-003": {bad: []talk{{
		says:  says{"list_objects": gives(`{"objects":[{"object_api_name":"contact","label":"A"},{"object_api_name":"contact","label":"B"}]}`)},
		finds: `"contact" stands twice`,
	}}},
	"OBJ-004": {
		good: []talk{{}, {
			says: says{"list_objects": inTurn(gives(bothObjects),
				gives(`{"objects":[{"object_api_name":"order","label":"Order"},{"object_api_name":"contact","label":"Contact"}]}`))},
			notes: "the order of the objects changes",
		}},
		bad: []talk{{
			says:  says{"list_objects": inTurn(gives(bothObjects), gives(`{"objects":[{"object_api_name":"contact_2","label":"Contact"}]}`))},
			finds: "then contact_2",
		}},
	},
	"OBJ-005": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{but("zz_conf_"+scriptRun, "")}, finds: "the field is missing"}},
	},

	"OPS-001": {
		good: []talk{{}, {says: says{"supported_operations": gives(`{"operations":["upsert","delete"]}`)}, notes: `lists "delete"`}},
		bad: []talk{
			{says: says{"supported_operations:contact": gives(`{"operations":["append"]}`)}, finds: `"append"`},
			{says: says{"supported_operations:contact": gives(`{"operations":"upsert"}`)}, finds: `the array "operations"`},
		},
	},
	"OPS-002": {bad: []talk{
		{says: says{"supported_operations:order": gives(`{"operations":[]}`)}, finds: "at least one operation"},
		{says: says{"supported_operations:order": gives(`{"operations":["upsert","upsert"]}`)}, finds: `"upsert" stands twice`},
	}},
	"OPS-003": {bad: []talk{{says: says{"supported_operations": gives(`{"operations":["upsert"]}`)}, finds: "no result"}}},

	"STA-001": {
		good: []talk{{
			hook: map[string]string{"alter_schema": `{"ok":true,"object":"order","field":"zz_new"}`},
			says: says{"list_fields:order": inTurn(gives(orderFields), gives(withField(`"zz_new"`)))},
		}},
		bad: []talk{{
			hook:  map[string]string{"alter_schema": `{"ok":true,"object":"order","field":"zz_new"}`},
			finds: "the fields are as before: order_no, note",
		}},
	},
	"STA-005": {bad: []talk{{says: says{"supported_operations": failure(-32000, "no session")}, finds: "no session"}}},
	"STA-007": {bad: []talk{{
		says:  says{"list_objects": inTurn(failure(-32000, "warming up"), gives(bothObjects))},
		finds: "warming up",
	}}},
	"VER-001": {good: []talk{{notes: "protocol v1 with the profile v1"}}},
}

// withField is list_fields of order with the note renamed.
func withField(name string) string { return strings.ReplaceAll(orderFields, `"note"`, name) }

// fieldOf is a list_fields result of one field.
func fieldOf(flags string) answer {
	return gives(`{"fields":[{"field_api_name":"order_no","label":"Number",` + flags + `}]}`)
}

// fieldExchanges: list_fields.
var fieldExchanges = map[string]exchange{
	"FLD-001": {bad: []talk{
		{
			says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"string"`)},
			finds: `"array" in every field`,
		},
		{
			says:  says{"list_fields:order": fieldOf(`"identifier":"yes","required":true,"createable":true,"updateable":true,"type":"string","array":false`)},
			finds: `field 1 has "yes"`,
		},
		{says: says{"list_fields:order": gives(`[]`)}, finds: `the array "fields"`},
	}},
	"FLD-002": {bad: []talk{
		{says: says{"list_fields:order": gives(withField(`"order_no"`))}, finds: `"order_no" stands twice`},
		{says: says{"list_fields:order": gives(withField(`""`))}, finds: "empty name"},
	}},
	"FLD-003": {bad: []talk{{
		says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"text","array":false`)},
		finds: "one of the types",
	}}},
	"FLD-004": {
		good: []talk{{}, {says: says{"list_fields:order": gives(`{"fields":[]}`)}}}, // FLD-010 judges the empty list
		bad: []talk{{
			says:  says{"list_fields:order": fieldOf(`"identifier":false,"required":true,"createable":true,"updateable":true,"type":"string","array":false`)},
			finds: `list_fields of "order" has none`,
		}},
	},
	"FLD-005": {bad: []talk{{
		says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":false,"createable":true,"updateable":true,"type":"string","array":false`)},
		finds: "required true for a field that may be the identifier",
	}}},
	"FLD-006": {bad: []talk{
		{
			says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"date","array":false`)},
			finds: "a string or an integer",
		},
		{
			says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":true`)},
			finds: "and no array",
		},
	}},
	"FLD-007": {
		good: []talk{{}, { // nothing new is ever made where update is all
			says: says{
				"list_fields:order":          fieldOf(`"identifier":true,"required":true,"createable":false,"updateable":true,"type":"string","array":false`),
				"supported_operations:order": gives(`{"operations":["update"]}`),
			},
		}},
		bad: []talk{{
			says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":false,"updateable":true,"type":"string","array":false`)},
			finds: "createable true for a required field",
		}},
	},
	"FLD-008": {bad: []talk{{
		says:  says{"list_fields:order": fieldOf(`"identifier":true,"required":true,"createable":false,"updateable":false,"type":"string","array":false`)},
		finds: "createable or updateable",
	}}},
	"FLD-009": {bad: []talk{
		{says: says{"list_fields": gives(`{"fields":[]}`)}, finds: "no result"},
		{says: says{"list_fields": gives(orderFields)}, finds: "no result"},
	}},
	"FLD-010": {bad: []talk{
		{says: says{"list_fields:order": gives(`{"fields":[]}`)}, finds: `list_fields of "order" is empty`},
		{says: says{"list_fields:order": inTurn(gives(orderFields), gives(withField(`"remark"`)))}, finds: "now lists order_no, remark"},
	}},
}

// speedExchanges: get_sync_speed and the rate limit.
var speedExchanges = map[string]exchange{
	"SPD-001": {
		good: []talk{{}, {
			says:  says{"get_sync_speed": gives(`{"maximum_batch_size":1,"maximum_parallel_batches":80,"maximum_records_per_second":1}`)},
			notes: "at most 50 batches at once",
		}},
		bad: []talk{
			{says: says{"get_sync_speed": gives(`{"maximum_batch_size":"100","maximum_parallel_batches":4,"maximum_records_per_second":9}`)}, finds: `"100"`},
			{says: says{"get_sync_speed": gives(`{"maximum_batch_size":100,"maximum_parallel_batches":0,"maximum_records_per_second":9}`)}, finds: `"maximum_parallel_batches" as`},
			{says: says{"get_sync_speed": gives(`{"maximum_batch_size":2.5,"maximum_parallel_batches":4,"maximum_records_per_second":9}`)}, finds: "2.5"},
			{says: says{"get_sync_speed": gives(`{"maximum_batch_size":100,"maximum_parallel_batches":4}`)}, finds: "it is missing"},
		},
	},
	"SPD-002": {bad: []talk{{says: says{"get_sync_speed": failure(-32602, "sync_plan is missing")}, finds: "sync_plan is missing"}}},
	"SPD-003": {bad: []talk{{
		says:  says{"get_sync_speed": gives(`{"maximum_batch_size":10000,"maximum_parallel_batches":4,"maximum_records_per_second":1}`)},
		finds: "10000 records in a batch at 1 records/s take 10000 s",
	}}},
	"SPD-004": {
		good: []talk{{says: says{"get_sync_speed": gives(usualSpeed).header(rateHeader, "5")}}},
		bad: []talk{
			{says: says{"get_sync_speed": gives(usualSpeed).header(rateHeader, "4")}, finds: "1000 records/s in batches of 200 are 5 requests/s"},
			{
				says:  says{"get_sync_speed": gives(`{"maximum_batch_size":1,"maximum_parallel_batches":4,"maximum_records_per_second":50001}`)},
				finds: "at most 50000 requests/s",
			},
		},
	},
	"SPD-005": {bad: []talk{{
		says: says{"get_sync_speed": inTurn(gives(usualSpeed), gives(usualSpeed),
			gives(`{"maximum_batch_size":200,"maximum_parallel_batches":4,"maximum_records_per_second":873}`))},
		finds: "873",
	}}},
	"RL-001": {
		good: []talk{{}, {says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000")}}},
		bad: []talk{
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "100;w=60")}, finds: "100;w=60"},
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "100/s")}, finds: "100/s"},
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "1.5")}, finds: "1.5"},
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "1e3")}, finds: "1e3"},
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "0")}, finds: rateHeader + ": 0"},
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "-1")}, finds: rateHeader + ": -1"},
		},
	},
	"RL-002": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000")}}},
		bad: []talk{
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000").header(rateHeader, "100")}, finds: "2 lines: 50000, 100"},
			{says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000, 100")}, finds: "50000, 100"},
		},
	},
	"RL-003": {
		good: []talk{{notes: "no reply has the header"}, {
			says: says{
				"test_connection": gives(`{"success":true}`).header(rateHeader, "50000"),
				"list_objects":    gives(bothObjects).header(rateHeader, "40000"),
			},
			notes: "changed once, from 50000 to 40000",
		}},
		bad: []talk{{
			says: says{
				"test_connection": gives(`{"success":true}`).header(rateHeader, "1000"),
				"list_objects":    gives(bothObjects).header(rateHeader, "10"),
				"get_sync_speed":  gives(usualSpeed).header(rateHeader, "1000"),
			},
			finds: "1000, then 10, then 1000",
		}, {
			says: says{
				"list_objects": gives(bothObjects).header(rateHeader, "50000"),
				"unknown":      failure(-32601, "Method not found").header(rateHeader, "10"),
			},
			finds: "50000, then 10",
		}},
	},
	"RL-004": {
		prepare: func(s *session) { s.catalog.rateLimit = 500 },
		good:    []talk{{}},
		bad: []talk{
			{says: says{"test_connection": first(3, gives(`{"success":true}`), page(429, "Too Many Requests"))}, finds: "HTTP 429"},
			{says: says{"test_connection": first(3, gives(`{"success":true}`), page(503, "Service Unavailable"))}, finds: "HTTP 503"},
		},
	},
	"RL-006": {good: []talk{
		{notes: "the default of 50000 requests per second applies"},
		{says: says{"list_objects": gives(bothObjects).header(rateHeader, "100")}, notes: "100 requests per second"},
	}},
}
