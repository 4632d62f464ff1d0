package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Audit is what the service's audit says: it reads every record of the
// destination through the read-back hook and holds it against the source and
// the ledger.
type Audit struct {
	Clean   bool `json:"clean"`
	Checked struct {
		Source      int64 `json:"source"`
		Ledger      int64 `json:"ledger"`
		Destination int64 `json:"destination"`
		Runs        int64 `json:"runs"`
	} `json:"checked"`
	Totals   map[string]int64 `json:"totals"`
	Findings []struct {
		Kind       string          `json:"kind"`
		Identifier json.RawMessage `json:"identifier"`
		Message    string          `json:"message"`
	} `json:"findings"`
	Seconds float64 `json:"-"`
}

// shownFindings is how many findings are shown.
const shownFindings = 5

// String is the audit on one line.
func (a Audit) String() string {
	verdict := "clean"
	if !a.Clean {
		verdict = "not clean"
	}
	return fmt.Sprintf("%s: %s read back from the destination, %s of the source and %s of the ledger compared, %s counted up anew; %.1f s",
		verdict, quantity.Counted(a.Checked.Destination, "record"), quantity.Counted(a.Checked.Source, "row"), quantity.Counted(a.Checked.Ledger, "identifier"), quantity.Count(a.Checked.Runs, "run"), a.Seconds)
}

// prove has the service audited, after the last run.
func (d *Demo) prove(ctx context.Context, w *World, last step) error {
	foreign.Print(d.Out, "\naudit ") // it takes a moment
	began := time.Now()
	body := map[string]any{"sync_id": w.Sync, "readback": map[string]string{"url": w.Destination.Root + "/_control/readback"}}
	done := command.GoesOn(d.Screen, d.quiet, "auditing")
	err := w.API.Control(ctx, http.MethodPost, "/audit", body, &d.audit)
	done()
	if err != nil {
		return err
	}
	d.audit.Seconds = time.Since(began).Seconds()
	foreign.Println(d.Out, d.audit)
	a := d.audit
	for i, finding := range a.Findings {
		if i == shownFindings {
			break
		}
		d.wrong("audit: %s %s: %s", finding.Kind, foreign.Line(command.CompactJSON(finding.Identifier)), foreign.Line(finding.Message))
	}
	if !a.Clean && len(a.Findings) == 0 {
		d.wrong("the audit is not clean")
	}
	// An audit that looks at nothing is clean as well.
	if a.Checked.Source != last.source || a.Checked.Destination != last.stored || a.Checked.Ledger < last.stored || a.Checked.Runs != int64(len(d.runs)) {
		d.wrong("the audit looked at %s, %s and %s instead of %s, %s and %d", quantity.Counted(a.Checked.Source, "row"),
			quantity.Counted(a.Checked.Destination, "record"), quantity.Count(a.Checked.Runs, "run"), quantity.Grouped(last.source), quantity.Grouped(last.stored), len(d.runs))
	}
	return nil
}
