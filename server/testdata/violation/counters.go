package violation

import (
	"fmt"
	"strconv"

	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// countedRun are the counters of a run on its way to a client.
type countedRun map[string]any

func (r countedRun) of(name string) int64 { return exchange.IntOf(r[name]) }

func (r countedRun) add(name string, n int64) { r[name] = r.of(name) + n }

// miscounts is a violation in which runs are shown with other counters.
func miscounts(id, changes string, change func(countedRun), also ...Also) violation {
	v := breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is("GET /sync_runs/*") || a.Is("GET /syncs/*/sync_runs") {
			a.Data(func(run map[string]any) {
				if run["records_processed"] != nil {
					change(run)
				}
			})
		}
	}})
	v.Also = also
	return v
}

// The counters that violations change.
const (
	countRead, countChanged, countGone = "source_record_count", "source_record_updates", "source_record_deletes"
	countProcessed, countUpdated       = "records_processed", "records_updated"
	countFailed, countInvalid          = "records_failed", "records_invalid"
	countFound                         = "source_record_invalids"
)

// countersViolations break the rules of CNT: the counters of a run (spec 2.9).
func countersViolations() []violation {
	return append(offByOneViolations(), []violation{
		miscounts("CNT-002", "source_record_count has only the records that are sent, where none has failed", func(r countedRun) {
			if r.of(countFailed) == 0 {
				r[countRead] = r.of(countChanged)
			}
		}),
		miscounts("CNT-004", "records that have not changed count as updated where nothing is sent", func(r countedRun) {
			if r.of(countProcessed) == 0 {
				r[countUpdated] = r.of(countRead)
			}
		}),
		miscounts("CNT-006", "invalid records count as failed", func(r countedRun) {
			if r.of(countFailed) == 0 {
				r[countFailed], r[countInvalid] = r.of(countInvalid), 0
			}
		}),
		engineBreaks("CNT-008", "each refusal of a record counts in a run without deletes", func(d *executor.Deviations) { d.CountsRefusals = true },
			Also{"CNT-009", "the refusal before it was accepted counts"},
			Also{"CNT-012", "more records failed than the history has"}),
		engineBreaks("CNT-009", "a record that was refused at first counts as updated and as failed", func(d *executor.Deviations) { d.CountsFirstRefusal = true }),
		breaks("CNT-012", "the history leaves out what was refused", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*/records") {
				a.Edit(func(body map[string]any) {
					kept := []any{}
					records, _ := body["data"].([]any)
					for _, r := range records {
						if record, ok := r.(map[string]any); ok && record["status"] != "rejected" {
							kept = append(kept, record)
						}
					}
					body["data"] = kept
				})
			}
		}}),
		miscounts("CNT-013", "in a run that has failed every record counts as updated", func(r countedRun) {
			if r["status"] == "failed" {
				r[countUpdated] = r.of(countRead)
			}
		}),
		miscounts("CNT-014", "a full sync counts no record as an update", func(r countedRun) {
			if r["full_sync"] == true {
				r[countChanged] = 0
			}
		}),
	}...)
}

// offByOneViolations miss each counter by one, where a run has deletes and
// failures and no invalid record.
func offByOneViolations() (out []violation) {
	for i, c := range []struct {
		name string
		by   int64
	}{
		{countProcessed, -1}, {countUpdated, 1}, {countFailed, -1}, {countInvalid, 1},
		{countRead, -1}, {countChanged, 1}, {countGone, -1}, {countFound, 1},
	} {
		id := "CNT-015"
		if i > 0 {
			id += "." + strconv.Itoa(i+1)
		}
		out = append(out, miscounts(id, fmt.Sprintf("%s is wrong by one in a run of changes, several deletes and failures", c.name), func(r countedRun) {
			if r.of(countGone) > 1 && r.of(countFailed) > 0 {
				r.add(c.name, c.by)
			}
		}))
	}
	return out
}
