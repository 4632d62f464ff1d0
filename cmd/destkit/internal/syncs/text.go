package syncs

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server/api"
)

// runName is how a run is called: with its sync, and the label of that.
func runName(v View) string {
	name := fmt.Sprintf("sync %d", v.Run.SyncID)
	if label := v.Sync.name(); label != "" {
		name += " (" + foreign.Clip(foreign.Line(label), 40) + ")"
	}
	return fmt.Sprintf("%s, run %d", name, v.Run.ID)
}

// progressText describes the progress of a run.
func progressText(v View) string {
	r := v.Run
	stage := r.Status
	if step := Text(r.CurrentStep); step != "" && !HasStatus(r.Status, api.RunQueued) {
		stage = step
	}
	if r.SourceRecordCount == nil {
		return stage
	}
	text := fmt.Sprintf("%s, %s read, %s to send, %s sent", stage, quantity.Grouped(Count(r.SourceRecordCount)),
		quantity.Grouped(Count(r.SourceRecordUpdates)+Count(r.SourceRecordDeletes)), quantity.Grouped(Count(r.RecordsUpdated)))
	text += problems(r)
	if v.RecordsPerSecond >= 1 {
		text += fmt.Sprintf(", %s/s", quantity.Grouped(int64(v.RecordsPerSecond)))
	}
	if v.Left > 0 {
		text += ", about " + v.Left.String() + " left"
	}
	return text
}

// shortText describes the progress of a run in some fifty letters.
func shortText(v View) string {
	r := v.Run
	toSend := Count(r.SourceRecordUpdates) + Count(r.SourceRecordDeletes)
	text := fmt.Sprintf("run %d", r.ID)
	if step := Text(r.CurrentStep); step != "" {
		text += " " + strings.ToLower(step)
	}
	switch {
	case toSend > 0:
		text += fmt.Sprintf(": %s of %s sent", quantity.Grouped(Count(r.RecordsUpdated)), quantity.Grouped(toSend))
	case r.SourceRecordCount != nil:
		text += fmt.Sprintf(": %s read", quantity.Grouped(Count(r.SourceRecordCount)))
	}
	text += problems(r)
	if v.RecordsPerSecond >= 1 {
		text += fmt.Sprintf(", %s/s", quantity.Grouped(int64(v.RecordsPerSecond)))
	}
	if v.Left > 0 {
		text += ", " + v.Left.String() + " left"
	}
	return text
}

// problems names what went wrong with records, and nothing when all went well.
func problems(r api.SyncRun) (text string) {
	if n := Count(r.RecordsFailed); n > 0 {
		text += ", " + quantity.Grouped(n) + " failed"
	}
	if n := Count(r.RecordsInvalid); n > 0 {
		text += ", " + quantity.Grouped(n) + " invalid"
	}
	return text
}

// sumText describes the progress of several runs together.
func sumText(active []View) (text string, share float64) {
	var sent, perSecond float64
	for _, v := range active {
		sent += float64(Count(v.Run.RecordsUpdated))
		perSecond += v.RecordsPerSecond
		// One run of unknown length makes the sum unknown.
		if v.Share < 0 || share < 0 {
			share = -1
			continue
		}
		share += v.Share / float64(len(active))
	}
	return fmt.Sprintf("%s: %s sent, %s/s", quantity.Count(len(active), "run"), quantity.Grouped(int64(sent)), quantity.Grouped(int64(perSecond))), share
}

// endText is the last word on a run.
func endText(v View) string {
	r := v.Run
	if HasStatus(r.Status, api.RunSkipped) {
		return runName(v) + ": skipped: an earlier run of the sync is still active\n"
	}
	outcome := foreign.Line(strings.ToLower(r.Status))
	if r.Canceled {
		outcome = "cancelled"
	}
	if r.FullSync {
		outcome += " (full sync)"
	}
	text := fmt.Sprintf("%s: %s", runName(v), outcome)
	if v.Elapsed > 0 {
		text += " in " + quantity.Roughly(v.Elapsed)
	}
	text += fmt.Sprintf("\n  %s read, %s, %s, %s invalid; %s processed, %s updated, %s failed",
		quantity.Counted(Count(r.SourceRecordCount), "row"), quantity.Counted(Count(r.SourceRecordUpdates), "update"), quantity.Counted(Count(r.SourceRecordDeletes), "delete"),
		quantity.Grouped(Count(r.RecordsInvalid)), quantity.Counted(Count(r.RecordsProcessed), "record"), quantity.Grouped(Count(r.RecordsUpdated)), quantity.Grouped(Count(r.RecordsFailed)))
	if v.RecordsPerSecond >= 1 {
		text += fmt.Sprintf("; %s/s", quantity.Grouped(int64(v.RecordsPerSecond)))
	}
	text += "\n"
	for _, line := range []string{strings.Trim(Text(r.ErrorCode)+": "+Text(r.ErrorMessage), ": "), Text(r.ErrorDetail)} {
		if line = foreign.Line(line); line != "" {
			text += "  " + line + "\n"
		}
	}
	return text
}
