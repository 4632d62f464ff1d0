package destsim

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// severalResults is how many records make a batch several (RES-002): a batch of
// one or two has its results.
const severalResults = 3

// resultsViolations are too few or too many results, other identifiers, and a wrong
// status or message (RES-001 to RES-006, RES-008, RES-010, RES-017).
var resultsViolations = []violation{
	breaks("RES-001", "upsert answers record_results as an object keyed by identifier",
		answered(func(c *call) bool { return gives(c, rpc.MethodSyncBatch) && c.batch.operation == rpc.OperationUpsert },
			func(c *call) { c.result = encode(map[string]any{"record_results": keyed(c.batch.results)}) })),
	breaks("RES-002", "upsert leaves out the result of the last record of a batch of three or more", upserted(func(rs []result) []result {
		if len(rs) >= severalResults {
			return rs[:len(rs)-1]
		}
		return rs
	})),
	breaks("RES-002.2", "a batch of three or more records leaves out the results of those that do not qualify", resultsOf("", func(rs []result) []result {
		if len(rs) >= severalResults {
			return slices.DeleteFunc(rs, func(r result) bool { return r.skipped })
		}
		return rs
	})),
	breaks("RES-002.3", "upsert answers the first record of a batch of three or more twice, once with success and once without", upserted(func(rs []result) []result {
		if len(rs) < severalResults {
			return rs
		}
		other := result{identifier: rs[0].identifier, success: !rs[0].success}
		if !other.success {
			other.message = "the record could not be stored"
		}
		return append(rs, other)
	})),
	breaks("RES-003", `upsert adds a result for the identifier "zz-nobody"`,
		upserted(func(rs []result) []result {
			return append(rs, result{identifier: []byte(`"zz-nobody"`), success: true})
		})),
	breaks("RES-003.2", "upsert answers the first record twice with the same status",
		upserted(func(rs []result) []result { return append(rs, rs[0]) })),

	breaks("RES-004", "upsert answers identifiers of digits beyond 2^53 rounded to a float64", echoed(rounded)),
	breaks("RES-004.2", "upsert answers identifiers without the white space around them", echoedText(strings.TrimSpace)),
	breaks("RES-004.3", "upsert answers identifiers in lower case", echoedText(strings.ToLower)),
	breaks("RES-017", "upsert answers integer identifiers as strings", echoed(func(identifier []byte) []byte {
		if len(identifier) > 0 && isNumber(identifier) {
			return store.Quote(string(identifier))
		}
		return nil
	})),

	breaks("RES-005", `upsert answers "success":1 for a success`, succeeding(1)),
	breaks("RES-005.2", `upsert answers "success":"ok" for a success`, succeeding("ok")),
	breaks("RES-006", "failures have an object as error_message", failing(func(r *result) {
		r.raw = encode(looseResult{r.identifier, false, map[string]string{"detail": r.message}})
	})),
	breaks("RES-006.2", "failures have no error_message", failing(func(r *result) { r.message = "" })),
	breaks("RES-008", "the record after one that fails validation is marked as failed too", resultsOf("", func(rs []result) []result {
		for i := len(rs) - 1; i > 0; i-- { // from behind: a mark counts for no further record
			if rs[i-1].invalid() {
				rs[i].abort()
			}
		}
		return rs
	})),
	breaks("RES-008.2", "all records after the first one that fails validation are marked as failed too", resultsOf("", func(rs []result) []result {
		for i := slices.IndexFunc(rs, result.invalid) + 1; 0 < i && i < len(rs); i++ {
			rs[i].abort()
		}
		return rs
	})),
	breaks("RES-008.3", "where some records of a batch fail validation and others do not, the first record is marked as failed and all others as successes",
		resultsOf("", blameFirst), Also{"RES-010", "the failure stands at the first record instead of the bad one"}),
	breaks("RES-010", "in a batch with a record that fails validation each status stands at the record before", resultsOf("", func(rs []result) []result {
		if !slices.ContainsFunc(rs, result.invalid) {
			return rs
		}
		moved := append(slices.Clone(rs[1:]), rs[0])
		for i := range rs {
			moved[i].identifier = rs[i].identifier
		}
		return moved
	}), Also{"RES-008", "a good record is marked as failed"}),
}

// resultsOf changes the results of the batches of an operation that have any; "" is any.
func resultsOf(operation string, change func(rs []result) []result) seams {
	return seams{results: func(c *call, rs []result) []result {
		if len(rs) == 0 || operation != "" && c.batch.operation != operation {
			return rs
		}
		return change(rs)
	}}
}

func upserted(change func(rs []result) []result) seams { return resultsOf(rpc.OperationUpsert, change) }

// keyed gives results by the text of their identifier.
func keyed(rs []result) map[string]bool {
	by := make(map[string]bool, len(rs))
	for _, r := range rs {
		by[plainText(r.identifier)] = r.success
	}
	return by
}

// eachResult is resultsOf for one result at a time.
func eachResult(operation string, change func(r *result)) seams {
	return resultsOf(operation, func(rs []result) []result {
		for i := range rs {
			change(&rs[i])
		}
		return rs
	})
}

// echoed changes the identifiers of upsert results; nil leaves one as it is.
func echoed(change func(identifier []byte) []byte) seams {
	return eachResult(rpc.OperationUpsert, func(r *result) {
		if changed := change(r.identifier); changed != nil {
			r.identifier = changed
		}
	})
}

// echoedText changes identifiers that are strings.
func echoedText(change func(text string) string) seams {
	return echoed(func(identifier []byte) []byte {
		text, err := rawjson.StringText(identifier)
		if err != nil || change(text) == text {
			return nil // unchanged values keep their bytes
		}
		return store.Quote(change(text))
	})
}

// rounded is what a number that passed through a float64 comes back as, of the
// same JSON type; nil for everything that a float64 holds.
func rounded(identifier []byte) []byte {
	digits := strings.Trim(string(identifier), `"`)
	if strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 1<<53 || math.IsInf(n, 0) {
		return nil
	}
	back := strconv.FormatFloat(n, 'f', 0, 64)
	if len(digits) < len(identifier) {
		return store.Quote(back)
	}
	return []byte(back)
}

// looseResult is a result with members of any type.
type looseResult struct {
	Identifier   json.RawMessage `json:"identifier"`
	Success      any             `json:"success"`
	ErrorMessage any             `json:"error_message,omitempty"`
}

// succeeding gives the successes of upsert another value of "success".
func succeeding(value any) seams {
	return eachResult(rpc.OperationUpsert, func(r *result) {
		if !r.success {
			return
		}
		loose := looseResult{Identifier: r.identifier, Success: value}
		if r.message != "" {
			loose.ErrorMessage = r.message
		}
		r.raw = encode(loose)
	})
}

// failing changes results that are failures.
func failing(change func(r *result)) seams {
	return eachResult("", func(r *result) {
		if !r.success {
			change(r)
		}
	})
}

// blameFirst is RES-008.3. A record without identifier stays failed, and so do
// records of which none is good: that they must not succeed are other rules.
func blameFirst(rs []result) []result {
	if !slices.ContainsFunc(rs, func(r result) bool { return r.success }) {
		return rs
	}
	message := ""
	for i := range rs {
		if r := &rs[i]; r.invalid() && len(r.identifier) > 0 && r.identifier[0] != 'n' {
			message = r.message
			r.success, r.message = true, ""
		}
	}
	if message != "" {
		rs[0].success, rs[0].message = false, message
	}
	return rs
}

// invalid reports whether the record was refused for its content.
func (r result) invalid() bool { return !r.success && !r.skipped }

// abort marks a success as failed.
func (r *result) abort() {
	if r.success {
		r.success, r.message = false, "the statement was aborted"
	}
}
