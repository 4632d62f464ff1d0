package lifecycle

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// verdict is what an occasion means for an alert.
type verdict int

const (
	silent    verdict = iota // nothing: what is open stays open
	fulfilled                // all is well
	violated
)

// finding is a verdict in words. passing marks an event without duration: it
// has no recovery, and is sent each time regardless of send_for.
type finding struct {
	verdict          verdict
	message, details string
	passing          bool
}

// find judges one alert (spec 2.8). A cancelled run means nothing for
// a sync: a user wanted it to end.
func (l *Lifecycle) find(tx *store.Tx, o occasion, alert *api.Alert) (finding, error) {
	if o.run.Canceled {
		return finding{}, nil
	}
	completed := o.moment == runEnded && o.run.Status == api.RunCompleted
	switch {
	case alert.Type == api.AlertRuntime:
		return l.findRuntime(o, alert, completed), nil
	case alert.Type == api.AlertStatus:
		return findStatus(o, alert, completed), nil
	case alert.Type == api.AlertFullSyncTrigger && o.moment != runLate:
		return findFullSync(o), nil
	case alert.Type == api.AlertFailure && o.moment == runEnded:
		return findFailure(o, completed), nil
	case alert.Type == api.AlertInvalidRecordPercent && completed:
		return findInvalid(o, alert), nil
	case alert.Type == api.AlertRecordCountDeviation && completed:
		return findDeviation(tx, o, alert)
	}
	return finding{}, nil
}

func findFailure(o occasion, completed bool) finding {
	if completed {
		return finding{verdict: fulfilled, message: "Sync Recovered", details: "Sync has recovered"}
	}
	why := api.Value(o.run.ErrorMessage)
	if detail := api.Value(o.run.ErrorDetail); strings.Contains(detail, why) {
		why = detail // which includes it
	} else if detail != "" {
		why = strings.TrimPrefix(why+": "+detail, ": ")
	}
	if why == "" {
		why = "unknown error"
	}
	return finding{verdict: violated, message: "Sync Failed", details: "Sync has failed with error: " + why}
}

// findInvalid compares the invalid and the rejected records with the rows that the
// source holds, the unchanged ones too: one bad row of 10,001 is no 100 %, also where
// nothing else has changed. A threshold of 0 is about any such record.
func findInvalid(o occasion, alert *api.Alert) finding {
	threshold := api.Value(api.Value(alert.Options).Threshold)
	bad := api.Value(o.run.RecordsInvalid) + api.Value(o.run.RecordsFailed)
	all := max(api.Value(o.run.SourceRecordCount), api.Value(o.run.RecordsInvalid)+api.Value(o.run.RecordsProcessed))
	share := 0.0
	if all > 0 {
		share = 100 * float64(bad) / float64(all)
	}
	found := finding{
		verdict: fulfilled, message: "Invalid or Rejected Records Recovered",
		details: fmt.Sprintf("%d of %d records (%s) were invalid or rejected; the threshold is %d%%", bad, all, percent(share), threshold),
	}
	if bad > 0 && share >= float64(threshold) {
		found.verdict, found.message = violated, "Invalid or Rejected Records"
	}
	return found
}

// findFullSync is judged when a run starts and when it has ended: a run can turn
// into a full sync on its way.
func findFullSync(o occasion) finding {
	if !o.run.FullSync {
		if o.moment != runEnded {
			return finding{}
		}
		return finding{verdict: fulfilled, message: "Full Sync Recovered", details: "The last run was no full sync"}
	}
	details := "A full sync was triggered"
	if reason := o.run.TriggerReason; reason != nil && reason.UIDetail != "" {
		details += ": " + reason.UIDetail
	}
	return finding{verdict: violated, message: "Full Sync Triggered", details: details}
}

// findStatus reports that a run has started, or has completed successfully.
func findStatus(o occasion, alert *api.Alert, completed bool) finding {
	wanted := api.Value(api.Value(alert.Options).StatusName)
	switch {
	case wanted == "started" && o.moment == runStarted:
		return finding{verdict: violated, message: "Sync Started", details: "A run of the sync has started", passing: true}
	case wanted == "completed" && completed:
		return finding{verdict: violated, message: "Sync Completed", details: "A run of the sync has completed", passing: true}
	}
	return finding{}
}

// runtimeLimit is the moment until which a run must have completed.
func runtimeLimit(alert *api.Alert, o occasion) (time.Time, bool) {
	if alert.Type != api.AlertRuntime || alert.Options == nil {
		return time.Time{}, false
	}
	options := alert.Options
	from := o.began
	if api.Value(options.StartType) == "scheduled" && o.run.ScheduledExecutionTime != nil {
		from = o.run.ScheduledExecutionTime.Time
	}
	unit := time.Minute
	if api.Value(options.Unit) == "hours" {
		unit = time.Hour
	}
	return from.Add(time.Duration(api.Value(options.Threshold)) * unit), !from.IsZero()
}

// findRuntime: a run that failed in time does not show how long a complete
// one would take.
func (l *Lifecycle) findRuntime(o occasion, alert *api.Alert, completed bool) finding {
	limit, ok := runtimeLimit(alert, o)
	if !ok || o.moment == runStarted {
		return finding{}
	}
	options, at := alert.Options, l.Clock.Now()
	if o.run.CompletedAt != nil {
		at = o.run.CompletedAt.Time
	}
	allowed := fmt.Sprintf("%d %s of its %s start", api.Value(options.Threshold), api.Value(options.Unit), api.Value(options.StartType))
	switch {
	case !at.Before(limit) && o.moment == runLate:
		return finding{verdict: violated, message: "Sync Runtime Exceeded", details: "The run has not completed within " + allowed}
	case !at.Before(limit):
		return finding{verdict: violated, message: "Sync Runtime Exceeded", details: "The run did not complete within " + allowed}
	case completed:
		return finding{verdict: fulfilled, message: "Sync Runtime Recovered", details: "The run has completed within " + allowed}
	}
	return finding{}
}

// defaultRunCount is how many earlier runs a deviation is measured against when
// the alert does not say.
const defaultRunCount = 7

// findDeviation compares a count with the mean of earlier completed runs, as
// many as there are up to run_count. The first run has nothing to be compared
// with.
func findDeviation(tx *store.Tx, o occasion, alert *api.Alert) (finding, error) {
	options, runs := api.Value(alert.Options), int64(defaultRunCount)
	if options.RunCount != nil {
		runs = *options.RunCount
	}
	kind := api.Value(options.RecordType)
	now, known := countOf(o.run, kind)
	if !known {
		return finding{}, nil
	}
	earlier, err := tx.CompletedRuns(o.sync.ID, o.run.ID, runs)
	if err != nil {
		return finding{}, err
	}
	sum, n := 0.0, 0
	for _, run := range earlier {
		if count, known := countOf(&run.Run, kind); known {
			sum, n = sum+float64(count), n+1
		}
	}
	if n == 0 {
		return finding{}, nil
	}
	mean, threshold := sum/float64(n), api.Value(options.Threshold)
	deviation := 0.0
	switch {
	case mean > 0:
		deviation = 100 * math.Abs(float64(now)-mean) / mean
	case now > 0: // from nothing to something is more than any share
		deviation = math.Inf(1)
	}
	found := finding{
		verdict: fulfilled, message: "Record Count Deviation Recovered",
		details: fmt.Sprintf("%s is %d, the mean of the last %d runs is %s: a deviation of %s; the threshold is %d%%",
			kind, now, n, plain(mean), percent(deviation), threshold),
	}
	if deviation > float64(threshold) {
		found.verdict, found.message = violated, "Record Count Deviation"
	}
	return found, nil
}

// countOf is one of the counts of a run by the name that alerts have for it.
func countOf(r *api.SyncRun, kind string) (int64, bool) {
	count := map[string]*int64{
		"source_record_count": r.SourceRecordCount, "records_updates": r.SourceRecordUpdates,
		"records_deletes": r.SourceRecordDeletes, "records_invalid": r.RecordsInvalid,
		"records_processed": r.RecordsProcessed, "records_updated": r.RecordsUpdated, "records_failed": r.RecordsFailed,
	}[kind]
	return api.Value(count), count != nil
}

// percent prints a share for people.
func percent(share float64) string {
	if math.IsInf(share, 1) {
		return "more than any share"
	}
	return plain(share) + "%"
}

// plain prints a number with two decimals at most.
func plain(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}
