package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server/api"
)

// step is a change of the world, the run after it, and what that must show.
type step struct {
	title                    string
	change                   string // SQL, "" for none
	mirror                   bool   // the sync becomes a mirror first
	source, updates, deletes int64
	stored                   int64
}

// steps are the runs of the demo for a table of so many rows.
func steps(rows int64) []step {
	added, changed, gone := rows/100, rows/50, rows/200
	all := rows + added
	return []step{
		{title: "everything is new", source: rows, updates: rows, stored: rows},
		{title: "nothing has changed", source: rows, stored: rows},
		{title: fmt.Sprintf("%s new, %s changed", quantity.Grouped(added), quantity.Grouped(changed)), change: insertRows(rows+1, all) + updateRows(changed),
			source: all, updates: added + changed, stored: all},
		{title: fmt.Sprintf("mirror, %s gone", quantity.Grouped(gone)), change: deleteRows(rows/2+1, rows/2+gone), mirror: true,
			source: all - gone, deletes: gone, stored: all - gone},
	}
}

// figures are one line of the table.
type figures struct {
	Number                                               int
	Title                                                string
	Source, Updates, Deletes, Processed, Updated, Failed int64
	Requests, Stored                                     int64
	Seconds                                              float64
	PerSecond                                            int64
}

const header = "  run                            source   updates  deletes  processed   updated  failed  requests    stored  seconds  records/s"

// String is the line as text.
func (r figures) String() string {
	return fmt.Sprintf("  %d %-24s %10s %9s %8s %10s %9s %7s %9s %9s %8.2f %10s", r.Number, r.Title, quantity.Grouped(r.Source), quantity.Grouped(r.Updates),
		quantity.Grouped(r.Deletes), quantity.Grouped(r.Processed), quantity.Grouped(r.Updated), quantity.Grouped(r.Failed), quantity.Grouped(r.Requests), quantity.Grouped(r.Stored), r.Seconds, quantity.Grouped(r.PerSecond))
}

// step changes the world, runs the sync and compares.
func (d *Demo) step(ctx context.Context, w *World, step step) error {
	done := command.GoesOn(d.Screen, d.quiet, fmt.Sprintf("run %d (%s)", len(d.runs)+1, step.title))
	defer done()
	if step.mirror {
		if err := w.mirror(ctx); err != nil {
			return fmt.Errorf("make the sync a mirror: %w", err)
		}
	}
	if step.change != "" {
		if err := w.Change(ctx, step.change); err != nil {
			return fmt.Errorf("change the table: %w", err)
		}
	}
	before, err := w.held(ctx)
	if err != nil {
		return fmt.Errorf("read the counts of the destination: %w", err)
	}
	v, err := w.RunOnce(ctx, d, step.source)
	if err != nil {
		return err
	}
	after, err := w.held(ctx)
	if err != nil {
		return fmt.Errorf("read the counts of the destination: %w", err)
	}
	r := figures{
		Number: len(d.runs) + 1, Title: step.title, Source: syncs.Count(v.Run.SourceRecordCount), Updates: syncs.Count(v.Run.SourceRecordUpdates),
		Deletes: syncs.Count(v.Run.SourceRecordDeletes), Processed: syncs.Count(v.Run.RecordsProcessed), Updated: syncs.Count(v.Run.RecordsUpdated),
		Failed: syncs.Count(v.Run.RecordsFailed), Requests: after.batches - before.batches, Stored: after.records,
		Seconds: v.Elapsed.Seconds(), PerSecond: int64(v.RecordsPerSecond),
	}
	d.runs = append(d.runs, r)
	done()
	foreign.Println(d.Out, r)
	d.compare(r, step, v.Run)
	return nil
}

// RunOnce triggers the sync and waits for the end of the run; rows are in the
// table, by which the end is foretold.
func (w *World) RunOnce(ctx context.Context, d *Demo, rows int64) (v syncs.View, err error) {
	f := &syncs.Follower{Client: w.API, Show: syncs.Quiet{}, Every: 200 * time.Millisecond, Now: time.Now, Wait: pause.For}
	if command.Is(d.Screen) && !d.quiet {
		f.Show = syncs.NewBar(d.Screen, d.Screen)
	}
	p := syncs.NewPulse(f.Now(), &api.SyncRun{SourceRecordCount: &rows})
	run, err := w.API.Trigger(ctx, w.Sync, false)
	if err != nil {
		return v, fmt.Errorf("trigger the sync: %w", err)
	}
	return f.Follow(ctx, syncs.Sync{ID: w.Sync, Label: api.Ptr("Contacts")}, run, p)
}

// compare notes every wrong number (spec 2.9): the run sends exactly the
// changes, all of them arrive, and the destination holds them.
func (d *Demo) compare(r figures, step step, run api.SyncRun) {
	if !syncs.HasStatus(run.Status, api.RunCompleted) {
		d.wrong("run %d is %s: %s: %s", r.Number, run.Status, syncs.Text(run.ErrorCode), foreign.Line(syncs.Text(run.ErrorMessage)))
	}
	if run.FullSync {
		d.wrong("run %d was a full sync, for no reason", r.Number)
	}
	moved := step.updates + step.deletes
	for _, n := range []struct {
		name      string
		got, want int64
	}{
		{"source_record_count", r.Source, step.source}, {"source_record_updates", r.Updates, step.updates},
		{"source_record_deletes", r.Deletes, step.deletes}, {"source_record_invalids", syncs.Count(run.SourceRecordInvalids), 0},
		{"records_processed", r.Processed, moved}, {"records_updated", r.Updated, moved},
		{"records_failed", r.Failed, 0}, {"records_invalid", syncs.Count(run.RecordsInvalid), 0},
		{"the number of records in the destination", r.Stored, step.stored},
	} {
		if n.got != n.want {
			d.wrong("run %d: %s is %s instead of %s", r.Number, n.name, quantity.Grouped(n.got), quantity.Grouped(n.want))
		}
	}
	if (r.Requests > 0) != (moved > 0) {
		d.wrong("run %d: the destination got %s for %s", r.Number, quantity.Count(r.Requests, "batch"), quantity.Counted(moved, "record"))
	}
}

//go:embed html/demo.gohtml
var pageText string

var pageTemplate = template.Must(template.New("demo").Funcs(template.FuncMap{
	"grouped": quantity.Grouped, "figure": quantity.Rate, "short": quantity.Milliseconds, "tone": toneOf, "summary": summaryOf,
	"policy": func() string { return page.Policy },
	"look":   func() template.CSS { return template.CSS(page.Style) }, // ours, and constant
}).Parse(pageText))

// toneOf is the colour of a judgement, as its own page has it.
func toneOf(r *conformance.Report) string {
	switch r.Verdict {
	case conformance.Conformant:
		return "good"
	case conformance.ConformantInPart:
		return "part"
	case conformance.NonConformant:
		return "bad"
	}
	return "open"
}

// summaryOf is the summary behind the verdict.
func summaryOf(r *conformance.Report) template.HTML {
	return page.Sentence(foreign.Line(strings.TrimLeft(strings.TrimPrefix(r.Summary, string(r.Verdict)), ":; ")))
}

// writePage writes the one page with everything: runs, audit, judgements.
func (d *Demo) writePage(file string) error {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{
		"Rows": quantity.Grouped(d.rows), "Runs": d.runs, "Audit": d.audit, "Judgements": d.judgements, "Problems": d.problems,
		"Load": d.load, "LoadPage": loadReport,
	})
	if err != nil {
		return exit.Untested(fmt.Errorf("write %s: %w", reportFile, err))
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return exit.Untested(fmt.Errorf("write %s: %w", reportFile, err))
	}
	return nil
}

// The table of the demo, in an emulated warehouse: no client has to install one.
const (
	catalog   = "DEMO"
	schema    = "PUBLIC"
	tableName = "CONTACTS"
)

// mapped are the columns and the fields that they go to; the first one is the
// identifier.
var mapped = []struct{ column, field string }{
	{"EMAIL", "email"},
	{"LAST_NAME", "last_name"},
	{"FIRST_NAME", "first_name"},
	{"AGE", "age"},
	{"BALANCE", "balance"},
	{"SUBSCRIBED", "subscribed"},
	{"SEEN_AT", "last_seen_at"},
}

// portion is how many rows one call inserts: the service bounds its time.
const portion = 100_000

// table are the statements, a call each, that make the table with rows
// numbered from 1.
func table(rows int64) []string {
	all := []string{`CREATE TABLE CONTACTS (ID INTEGER PRIMARY KEY, EMAIL TEXT, LAST_NAME TEXT, FIRST_NAME TEXT,
  AGE INTEGER, BALANCE DECIMAL(12,2), SUBSCRIBED BOOLEAN, SEEN_AT DATETIME)`}
	for from := int64(1); from <= rows; from += portion {
		all = append(all, insertRows(from, min(from+portion-1, rows)))
	}
	return all
}

// insertRows adds the rows from to to.
func insertRows(from, to int64) string {
	return fmt.Sprintf(`WITH RECURSIVE numbers(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO CONTACTS SELECT n, printf('person%%08d@example.com', n), 'Family ' || (n %% 977), 'Given ' || (n %% 89),
  18 + n %% 70, printf('%%d.%%02d', n %% 10000, n %% 100), n %% 2, printf('2026-01-%%02dT%%02d:00:00Z', 1 + n %% 28, n %% 24)
FROM numbers;`, from, to)
}

// updateRows changes the first rows.
func updateRows(rows int64) string {
	return fmt.Sprintf("UPDATE CONTACTS SET LAST_NAME = 'Married ' || ID, AGE = AGE + 1 WHERE ID <= %d;", rows)
}

// deleteRows removes rows from the middle, far from those that were changed.
func deleteRows(from, to int64) string {
	return fmt.Sprintf("DELETE FROM CONTACTS WHERE ID BETWEEN %d AND %d;", from, to)
}
