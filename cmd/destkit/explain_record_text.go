package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// recordWay is one record's way through a run, as GET /_control/explain shows
// it. Values of the user's stay JSON text: no digit is lost.
type recordWay struct {
	Sync         int64           `json:"sync_id"`
	Run          int64           `json:"sync_run_id"`
	Identifier   json.RawMessage `json:"identifier"`
	Row          json.RawMessage `json:"source_row"`
	RowError     *string         `json:"source_error"` // why the source cannot be read now
	Copies       int64           `json:"copies"`       // rows with the identifier
	Record       json.RawMessage `json:"record"`
	Invalid      json.RawMessage `json:"invalid"`
	Fingerprints struct {
		Before *string `json:"before"`
		After  *string `json:"after"`
		Now    *string `json:"now"`
	} `json:"fingerprints"`
	Decision  string      `json:"decision"`
	Reason    string      `json:"reason"`
	Attempts  []wayTry    `json:"attempts"`
	Verdict   *string     `json:"verdict"`
	Message   string      `json:"message"`
	NextRetry wayNextTime `json:"next_retry"`
}

// wayTry is one attempt to send the record.
type wayTry struct {
	Number      int64           `json:"number"`
	Operation   string          `json:"operation"`
	StartedAt   *api.Time       `json:"started_at"`
	CompletedAt *api.Time       `json:"completed_at"`
	Verdict     string          `json:"verdict"`
	Message     string          `json:"message"`
	Record      json.RawMessage `json:"record"`
	Exchange    *wayExchange    `json:"exchange"`
}

// wayExchange is the call that carried an attempt; bodies above some size are
// left out by the service, with their length.
type wayExchange struct {
	ID            string          `json:"id"`
	Request       json.RawMessage `json:"request"`
	Response      json.RawMessage `json:"response"`
	RequestBytes  int64           `json:"request_bytes"`
	ResponseBytes int64           `json:"response_bytes"`
	Status        int             `json:"status"`
	Error         string          `json:"error"`
}

// wayNextTime says when the record is sent again.
type wayNextTime struct {
	When string    `json:"when"`
	At   *api.Time `json:"at"`
}

// wayWidth bounds a value in characters; --verbose shows it whole.
const wayWidth = 300

// text is the whole way, for reading.
func (w *recordWay) text(verbose bool) string {
	var b strings.Builder
	line := func(indent, name, value string) {
		if value = oneLine(value); !verbose {
			value = clip(value, wayWidth)
		}
		fmt.Fprintf(&b, "%s%-*s  %s\n", indent, 14-len(indent), name, value)
	}
	fmt.Fprintf(&b, "%s in run %d of sync %d\n", oneLine(compacted(w.Identifier)), w.Run, w.Sync)
	row := cmp.Or(compacted(w.Row), "the source has none now")
	if w.RowError != nil {
		row = joined("cannot be read now", *w.RowError)
	}
	if w.Copies > 1 {
		row += fmt.Sprintf(" (one of %d with this identifier)", w.Copies)
	}
	line("  ", "source row", row)
	if invalid := compacted(w.Invalid); invalid != "" {
		line("  ", "invalid", unquoted(invalid))
	} else {
		line("  ", "record", cmp.Or(compacted(w.Record), "none"))
	}
	line("  ", "fingerprint", fmt.Sprintf("before %s, after %s, of the row as it is now %s",
		cmp.Or(words(w.Fingerprints.Before), "none"), cmp.Or(words(w.Fingerprints.After), "none"), cmp.Or(words(w.Fingerprints.Now), "none")))
	line("  ", "decision", strings.TrimSuffix(w.Decision+"; "+w.Reason, "; "))
	for _, try := range w.Attempts {
		fmt.Fprintf(&b, "  attempt %d: %s%s\n", try.Number, oneLine(try.Operation), during(try))
		line("    ", "sent", cmp.Or(compacted(try.Record), "not kept"))
		try.Exchange.show(line)
		line("    ", "verdict", joined(try.Verdict, try.Message))
	}
	line("  ", "verdict", joined(cmp.Or(words(w.Verdict), "none: it was not sent in this run"), w.Message))
	next := cmp.Or(w.NextRetry.When, "none")
	if w.NextRetry.At != nil {
		next += ", " + clock(w.NextRetry.At)
	}
	line("  ", "next retry", next)
	return b.String()
}

// show writes one call.
func (x *wayExchange) show(line func(indent, name, value string)) {
	if x == nil {
		line("    ", "call", "the journal has forgotten it")
		return
	}
	answer := fmt.Sprintf("HTTP %d", x.Status)
	if x.Status == 0 {
		answer = "no answer"
	}
	line("    ", "call", joined(strings.TrimSpace(x.ID+" "+answer), x.Error))
	for _, body := range []struct {
		name  string
		text  json.RawMessage
		bytes int64
	}{{"request", x.Request, x.RequestBytes}, {"response", x.Response, x.ResponseBytes}} {
		text := compacted(body.text)
		if text == "" && body.bytes > 0 {
			text = grouped(body.bytes) + " bytes"
		}
		line("    ", body.name, cmp.Or(text, "none"))
	}
}

// during is the time of an attempt.
func during(try wayTry) string {
	if try.StartedAt == nil {
		return ""
	}
	text := " at " + clock(try.StartedAt)
	if try.CompletedAt != nil && try.CompletedAt.After(try.StartedAt.Time) {
		text += ", " + roughly(try.CompletedAt.Sub(try.StartedAt.Time))
	}
	return text
}

// clock is a moment as the API writes it.
func clock(t *api.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// compacted is a JSON value on one line, "" for null and for nothing.
func compacted(value json.RawMessage) string {
	var b bytes.Buffer
	if len(value) == 0 || json.Compact(&b, value) != nil || b.String() == "null" {
		return ""
	}
	return b.String()
}

// unquoted is the text of a JSON string, and any other value as it is.
func unquoted(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}

// joined adds an explanation, where there is one.
func joined(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}
