package destination

import "github.com/destkit/destkit/conformance"

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
		good: []talk{{says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000")}}, {status: conformance.NotApplicable}},
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
		good: []talk{{status: conformance.NotApplicable}, {
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
