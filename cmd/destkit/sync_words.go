package main

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/plural"
	"github.com/destkit/destkit/server/api"
)

// runName is how a run is called: with its sync, and the label of that.
func runName(v view) string {
	name := fmt.Sprintf("sync %d", v.run.SyncID)
	if label := v.sync.name(); label != "" {
		name += " (" + foreign.Clip(foreign.Line(label), 40) + ")"
	}
	return fmt.Sprintf("%s, run %d", name, v.run.ID)
}

// progressText says where a run stands.
func progressText(v view) string {
	r := v.run
	stage := r.Status
	if step := words(r.CurrentStep); step != "" && !is(r.Status, api.RunQueued) {
		stage = step
	}
	if r.SourceRecordCount == nil {
		return stage
	}
	text := fmt.Sprintf("%s, %s read, %s to send, %s sent", stage, quantity.Grouped(number(r.SourceRecordCount)),
		quantity.Grouped(number(r.SourceRecordUpdates)+number(r.SourceRecordDeletes)), quantity.Grouped(number(r.RecordsUpdated)))
	text += trouble(r)
	if v.recordsPerSecond >= 1 {
		text += fmt.Sprintf(", %s/s", quantity.Grouped(int64(v.recordsPerSecond)))
	}
	if v.left > 0 {
		text += ", about " + v.left.String() + " left"
	}
	return text
}

// shortText says where a run stands in some fifty letters.
func shortText(v view) string {
	r := v.run
	toSend := number(r.SourceRecordUpdates) + number(r.SourceRecordDeletes)
	text := fmt.Sprintf("run %d", r.ID)
	if step := words(r.CurrentStep); step != "" {
		text += " " + strings.ToLower(step)
	}
	switch {
	case toSend > 0:
		text += fmt.Sprintf(": %s of %s sent", quantity.Grouped(number(r.RecordsUpdated)), quantity.Grouped(toSend))
	case r.SourceRecordCount != nil:
		text += fmt.Sprintf(": %s read", quantity.Grouped(number(r.SourceRecordCount)))
	}
	text += trouble(r)
	if v.recordsPerSecond >= 1 {
		text += fmt.Sprintf(", %s/s", quantity.Grouped(int64(v.recordsPerSecond)))
	}
	if v.left > 0 {
		text += ", " + v.left.String() + " left"
	}
	return text
}

// trouble names what went wrong with records, and nothing when all went well.
func trouble(r api.SyncRun) (text string) {
	if n := number(r.RecordsFailed); n > 0 {
		text += ", " + quantity.Grouped(n) + " failed"
	}
	if n := number(r.RecordsInvalid); n > 0 {
		text += ", " + quantity.Grouped(n) + " invalid"
	}
	return text
}

// sumText says where several runs stand together.
func sumText(active []view) (text string, share float64) {
	var sent, perSecond float64
	for _, v := range active {
		sent += float64(number(v.run.RecordsUpdated))
		perSecond += v.recordsPerSecond
		// One run of unknown length makes the sum unknown.
		if v.share < 0 || share < 0 {
			share = -1
			continue
		}
		share += v.share / float64(len(active))
	}
	return fmt.Sprintf("%s: %s sent, %s/s", plural.Count(len(active), "run"), quantity.Grouped(int64(sent)), quantity.Grouped(int64(perSecond))), share
}

// endText is the last word on a run.
func endText(v view) string {
	r := v.run
	if is(r.Status, api.RunSkipped) {
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
	if v.elapsed > 0 {
		text += " in " + quantity.Roughly(v.elapsed)
	}
	text += fmt.Sprintf("\n  %s read, %s, %s, %s invalid; %s processed, %s updated, %s failed",
		quantity.Counted(number(r.SourceRecordCount), "row"), quantity.Counted(number(r.SourceRecordUpdates), "update"), quantity.Counted(number(r.SourceRecordDeletes), "delete"),
		quantity.Grouped(number(r.RecordsInvalid)), quantity.Counted(number(r.RecordsProcessed), "record"), quantity.Grouped(number(r.RecordsUpdated)), quantity.Grouped(number(r.RecordsFailed)))
	if v.recordsPerSecond >= 1 {
		text += fmt.Sprintf("; %s/s", quantity.Grouped(int64(v.recordsPerSecond)))
	}
	text += "\n"
	for _, line := range []string{strings.Trim(words(r.ErrorCode)+": "+words(r.ErrorMessage), ": "), words(r.ErrorDetail)} {
		if line = foreign.Line(line); line != "" {
			text += "  " + line + "\n"
		}
	}
	return text
}
