package destsim

import (
	"maps"
	"testing"
)

// speedSighting is seen in every answer of get_sync_speed, with params or
// without.
func speedSighting(id, part string) sighting {
	return sighting{id: id, sees: map[string]string{
		"speed": part, "speed for a plan": part, "speed with more": part, "speed twice": part + "\n",
	}}
}

// limitSighting is seen in the headers of every reply.
func limitSighting(id, speed, objects, failure string) sighting {
	return sighting{id: id, sees: map[string]string{
		"limit of speed": speed, "limit of objects": objects, "limit of an error": failure,
	}}
}

func TestViolateSpeed(t *testing.T) {
	const needsPlan = `"error":{"code":-32602,"message":"invalid params: sync_plan is missing"}`
	declines := one("SPD-005", "speed twice", `"maximum_records_per_second":1000000}`+"\n"+
		`"result":{"maximum_batch_size":100,"maximum_parallel_batches":16,"maximum_records_per_second":999999}`)
	crowded := limitSighting("RL-004", `["1000"]`, `["1000"]`, `["1000"]`)
	maps.Copy(crowded.sees, map[string]string{"501 connections": "map[200:500 429:1] then 200"})
	testSightings(t, speedViolations(), []sighting{
		speedSighting("SPD-001", `{"maximum_batch_size":"100","maximum_parallel_batches":16,"maximum_records_per_second":1000000}`),
		speedSighting("SPD-001.2", `{"maximum_batch_size":100,"maximum_parallel_batches":0,"maximum_records_per_second":1000000}`),
		speedSighting("SPD-001.3", `{"maximum_batch_size":100,"maximum_parallel_batches":16,"maximum_records_per_second":2.5}`),
		speedSighting("SPD-001.4", `{"maximum_batch_size":100,"maximum_records_per_second":1000000}`),
		one("SPD-002", "speed", needsPlan),
		{id: "SPD-002.2", sees: map[string]string{"speed": needsPlan, "speed with more": needsPlan}},
		speedSighting("SPD-003", `{"maximum_batch_size":100000000,"maximum_parallel_batches":16,"maximum_records_per_second":1000000}`),
		limitSighting("SPD-004", `200 ["500"]`, `200 ["500"]`, `200 ["500"]`),
		declines,
		{id: "SPD-006", sees: map[string]string{"more than half": `413 "error":{"code":-32013`, "a full batch": "0 acknowledged, 0 stored"}},
		one("SPD-006.2", "a full batch", "100 acknowledged, 99 stored"),
		{id: "SPD-007", sees: map[string]string{
			"three fours": "1 errors in 1s", "two fours": "0 errors in 1s", "fours in two runs": "0 errors in 1s",
		}},
		one("SPD-008", "five full batches", "[0s 0s 1s 2s 3s]"),

		one("RL-001", "limit of speed", `200 ["100/s"]`),
		one("RL-001.2", "limit of speed", `200 ["100;w=60"]`),
		one("RL-001.3", "limit of speed", `200 ["1.5"]`),
		one("RL-001.4", "limit of speed", `200 ["0"]`),
		one("RL-001.5", "limit of speed", `200 ["-1"]`),
		one("RL-001.6", "limit of speed", `200 ["1e3"]`),
		one("RL-002", "limit of speed", `200 ["100000" "100000"]`),
		limitSighting("RL-003", `200 ["50000"]`, `200 ["50000"]`+"\n"+`200 ["100000"]`, `200 ["50000"]`),
		crowded,
		one("RL-005", "130 batches", "131 acknowledged, 129 stored"),
	})
}
