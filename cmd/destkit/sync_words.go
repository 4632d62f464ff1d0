package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

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
	text := fmt.Sprintf("%s, %s read, %s to send, %s sent", stage, grouped(number(r.SourceRecordCount)),
		grouped(number(r.SourceRecordUpdates)+number(r.SourceRecordDeletes)), grouped(number(r.RecordsUpdated)))
	text += trouble(r)
	if v.recordsPerSecond >= 1 {
		text += fmt.Sprintf(", %s/s", grouped(int64(v.recordsPerSecond)))
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
		text += fmt.Sprintf(": %s of %s sent", grouped(number(r.RecordsUpdated)), grouped(toSend))
	case r.SourceRecordCount != nil:
		text += fmt.Sprintf(": %s read", grouped(number(r.SourceRecordCount)))
	}
	text += trouble(r)
	if v.recordsPerSecond >= 1 {
		text += fmt.Sprintf(", %s/s", grouped(int64(v.recordsPerSecond)))
	}
	if v.left > 0 {
		text += ", " + v.left.String() + " left"
	}
	return text
}

// trouble names what went wrong with records, and nothing when all went well.
func trouble(r api.SyncRun) (text string) {
	if n := number(r.RecordsFailed); n > 0 {
		text += ", " + grouped(n) + " failed"
	}
	if n := number(r.RecordsInvalid); n > 0 {
		text += ", " + grouped(n) + " invalid"
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
	return fmt.Sprintf("%s: %s sent, %s/s", plural.Count(len(active), "run"), grouped(int64(sent)), grouped(int64(perSecond))), share
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
		text += " in " + roughly(v.elapsed)
	}
	text += fmt.Sprintf("\n  %s read, %s, %s, %s invalid; %s processed, %s updated, %s failed",
		counted(number(r.SourceRecordCount), "row"), counted(number(r.SourceRecordUpdates), "update"), counted(number(r.SourceRecordDeletes), "delete"),
		grouped(number(r.RecordsInvalid)), counted(number(r.RecordsProcessed), "record"), grouped(number(r.RecordsUpdated)), grouped(number(r.RecordsFailed)))
	if v.recordsPerSecond >= 1 {
		text += fmt.Sprintf("; %s/s", grouped(int64(v.recordsPerSecond)))
	}
	text += "\n"
	for _, line := range []string{strings.Trim(words(r.ErrorCode)+": "+words(r.ErrorMessage), ": "), words(r.ErrorDetail)} {
		if line = foreign.Line(line); line != "" {
			text += "  " + line + "\n"
		}
	}
	return text
}

// roughly is a duration as people say it.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// counted is a number with its thousands apart and its noun: "1 record", "12,000 records".
func counted[N plural.Integer](n N, noun string) string {
	return grouped(int64(n)) + " " + plural.Noun(n, noun)
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
