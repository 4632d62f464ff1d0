package audit

import (
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// sums are the counters of one run, counted again: each key once, with its
// last verdict (spec 2.9).
type sums struct{ updated, failed, deletes int64 }

// count adds the last event of a key in a run. Records taken as sent are in no
// counter.
func (a *audit) count(last *event) {
	if last.skipped {
		return
	}
	s := a.sums[last.run]
	if s == nil {
		s = &sums{}
		a.sums[last.run] = s
	}
	if last.verdict == ledger.Acknowledged {
		s.updated++
	} else {
		s.failed++
	}
	if last.deleted {
		s.deletes++
	}
}

// counters compares the counters of every run whose log is kept with its sums,
// and those of the last one with the source.
func (a *audit) counters() error {
	kept, err := a.job.Ledger.Runs()
	if err != nil {
		return err
	}
	has := map[int64]bool{}
	for _, id := range kept {
		has[id] = true
	}
	for i := range a.job.Runs {
		run := &a.job.Runs[i]
		if !has[run.ID] {
			continue
		}
		ledgers, err := a.job.Ledger.Sums(run.ID)
		if errors.Is(err, ledger.ErrNoRun) {
			continue
		}
		if err != nil {
			return err
		}
		a.report.Checked.Runs++
		a.countersOf(run, ledgers)
	}
	return nil
}

func (a *audit) countersOf(run *api.SyncRun, ledgers ledger.Counters) {
	s := a.sums[run.ID]
	switch {
	case a.job.Events, a.job.Content: // several records may have one identifier, or none
		s = &sums{updated: ledgers.Updated, failed: ledgers.Failed, deletes: ledgers.Deleted}
	case s == nil:
		s = &sums{}
	}
	invalid := ledgers.Invalid
	processed := s.updated + s.failed
	a.counter(run, "records_updated", run.RecordsUpdated, s.updated)
	a.counter(run, "records_failed", run.RecordsFailed, s.failed)
	a.counter(run, "records_processed", run.RecordsProcessed, processed)
	a.counter(run, "records_invalid", run.RecordsInvalid, invalid)
	a.counter(run, "source_record_invalids", run.SourceRecordInvalids, invalid)
	if run.Status != api.RunCompleted { // it may have found more than it has sent
		return
	}
	a.counter(run, "source_record_updates", run.SourceRecordUpdates, processed-s.deletes)
	a.counter(run, "source_record_deletes", run.SourceRecordDeletes, s.deletes)
	if run != a.last || !a.completed || a.mark != nil || a.log != nil {
		return
	}
	rows := a.report.Checked.Source
	if s.deletes > 0 { // removals count too where they exceed the rows
		rows = max(rows, processed+invalid)
	}
	a.ofSource(run, "source_record_count", run.SourceRecordCount, rows)
	a.ofSource(run, "source_record_invalids", run.SourceRecordInvalids, a.invalids)
}

func (a *audit) counter(run *api.SyncRun, name string, says *int64, sum int64) {
	a.counted(run, name, says, sum, fmt.Sprintf("the ledger of run %d adds up to %d", run.ID, sum))
}

func (a *audit) ofSource(run *api.SyncRun, name string, says *int64, rows int64) {
	a.counted(run, name, says, rows, fmt.Sprintf("run %d is the last one, and the source has %d now", run.ID, rows))
}

// counted compares one counter; null is none, and right where nothing was
// written down.
func (a *audit) counted(run *api.SyncRun, name string, says *int64, want int64, message string) {
	if says == nil && want == 0 || says != nil && *says == want {
		return
	}
	f := Finding{Kind: Counter, RunID: &run.ID, Field: &name, Message: message, Expected: number(want)}
	if says != nil {
		f.Actual = number(*says)
	}
	a.find(f)
}
