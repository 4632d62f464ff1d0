package destination

import "github.com/destkit/destkit/conformance"

// speedExchanges: get_sync_speed and the rate limit.
var speedExchanges = map[string]exchange{
	"SPD-001": {
		good: []talk{{
			says:  says{"get_sync_speed": gives(`{"maximum_batch_size":1,"maximum_parallel_batches":80,"maximum_records_per_second":1}`)},
			notes: "at most 50 batches at once",
		}},
	},
	"SPD-004": {
		good: []talk{{says: says{"get_sync_speed": gives(usualSpeed).header(rateHeader, "5")}}},
		bad: []talk{
			{
				says:  says{"get_sync_speed": gives(`{"maximum_batch_size":1,"maximum_parallel_batches":4,"maximum_records_per_second":50001}`)},
				finds: "at most 50000 requests/s",
			},
		},
	},
	"RL-001": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000")}}, {status: conformance.NotApplicable}},
	},
	"RL-002": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header(rateHeader, "50000")}}},
		bad: []talk{
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
				"list_objects": gives(bothObjects).header(rateHeader, "50000"),
				"unknown":      failure(-32601, "Method not found").header(rateHeader, "10"),
			},
			finds: "50000, then 10",
		}},
	},
	"RL-004": {
		prepare: func(s *session) { s.catalog.rateLimit = 500 },
		bad: []talk{
			{says: says{"test_connection": first(3, gives(`{"success":true}`), page(503, "Service Unavailable"))}, finds: "HTTP 503"},
		},
	},
	"RL-006": {good: []talk{
		{notes: "the default of 50000 requests per second applies"},
		{says: says{"list_objects": gives(bothObjects).header(rateHeader, "100")}, notes: "100 requests per second"},
	}},
}
