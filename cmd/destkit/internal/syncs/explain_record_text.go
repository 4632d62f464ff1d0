package syncs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/api"
)

// recordWay is one record's way through a run, as GET /_control/explain shows
// it. Values of the user's stay JSON text: no digit is lost.
type recordWay struct{ server.Explained }

// wayWidth bounds a value in characters; --verbose shows it whole.
const wayWidth = 300

// text is the whole way, for reading.
func (w *recordWay) text(verbose bool) string {
	var b strings.Builder
	line := func(indent, name, value string) {
		if value = foreign.Line(value); !verbose {
			value = foreign.Clip(value, wayWidth)
		}
		foreign.Printf(&b, "%s%-*s  %s\n", indent, 14-len(indent), name, foreign.Own(value))
	}
	foreign.Printf(&b, "%s in run %d of sync %d\n", foreign.Line(command.CompactJSON(w.Identifier)), w.RunID, w.SyncID)
	row := cmp.Or(command.CompactJSON(w.SourceRow), "the source has none now")
	if w.SourceError != nil {
		row = joined("cannot be read now", *w.SourceError)
	}
	if w.Copies > 1 {
		row += fmt.Sprintf(" (one of %d with this identifier)", w.Copies)
	}
	line("  ", "source row", row)
	if w.Invalid != nil {
		line("  ", "invalid", *w.Invalid)
	} else {
		line("  ", "record", cmp.Or(command.CompactJSON(w.Record), "none"))
	}
	line("  ", "fingerprint", fmt.Sprintf("before %s, after %s, of the row as it is now %s",
		cmp.Or(Text(w.Prints.Before), "none"), cmp.Or(Text(w.Prints.After), "none"), cmp.Or(Text(w.Prints.Now), "none")))
	line("  ", "decision", strings.TrimSuffix(w.Decision+"; "+w.Reason, "; "))
	for _, c := range w.SchemaChanges {
		line("  ", "column", fmt.Sprintf("%q %s: %s", c.Column, c.Change, c.Handling))
	}
	for _, try := range w.Attempts {
		foreign.Printf(&b, "  attempt %d: %s%s\n", try.Number, foreign.Line(try.Operation), during(try))
		line("    ", "sent", cmp.Or(command.CompactJSON(try.Record), "not kept"))
		showCall(try.Exchange, line)
		line("    ", "verdict", joined(try.Verdict, try.Message))
	}
	line("  ", "verdict", joined(cmp.Or(Text(w.Verdict), "none: it was not sent in this run"), w.Message))
	next := cmp.Or(w.Next.When, "none")
	if w.Next.At != nil {
		next += ", " + clock(w.Next.At)
	}
	line("  ", "next retry", next)
	return b.String()
}

// showCall writes one call.
func showCall(x *server.ExplainedExchange, line func(indent, name, value string)) {
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
		text := command.CompactJSON(body.text)
		if text == "" && body.bytes > 0 {
			text = quantity.Counted(body.bytes, "byte")
		}
		line("    ", body.name, cmp.Or(text, "none"))
	}
}

// during is the time of an attempt.
func during(try server.ExplainedAttempt) string {
	if try.StartedAt == nil {
		return ""
	}
	text := " at " + clock(try.StartedAt)
	if try.CompletedAt != nil && try.CompletedAt.After(try.StartedAt.Time) {
		text += ", " + quantity.Roughly(try.CompletedAt.Sub(try.StartedAt.Time))
	}
	return text
}

// clock is a moment as the API writes it.
func clock(t *api.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// joined adds an explanation, where there is one.
func joined(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}
