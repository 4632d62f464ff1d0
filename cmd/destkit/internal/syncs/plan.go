package syncs

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server"
)

// dryRunner holds the flags of `destkit sync plan`.
type dryRunner struct {
	controlled
	full  bool
	limit int64
}

// planExitTable is in the help text of sync plan.
const planExitTable = `Exit status:
  0  planned: a run would not fail by itself
  1  a run would fail before it had sent everything, and the answer says why
  2  usage or configuration: a flag, no such sync, a run of it is active
  3  the service gave no answer or refused the token`

// newSyncPlan is a door to the control API: the published API has no such call.
func newSyncPlan() *cobra.Command {
	var d dryRunner
	cmd := &cobra.Command{
		Use:   "plan ID",
		Short: "Show what a run of a sync would do, without sending anything",
		Long: `Show what a run of the sync ID would create, change, delete and refuse, with a
sample of the records as they would be sent, and the time that it took. The
source is read, mapped and compared by the code of a run; nothing is sent, and
neither the ledger nor the state of the sync changes. A sync with an active run
cannot be planned.

create   the destination has acknowledged nothing of the record yet
change   it has acknowledged another content, or the operation is update
resend   it has acknowledged this content: a full sync sends it again
delete   the source no longer has it
refuse   the row is invalid and stays: no identifier, one that occurs twice, a
         cast or a template that fails
skip     the first run takes it as sent

Records with a null in a field that the destination requires are named as
doubtful: they would be sent.

It asks the control API of 'destkit serve', which answers on loopback, or with a
control token. What else a destination refuses, only a run can tell.`,
		Example: `  destkit sync plan 7
  destkit sync plan 7 --full --limit 3
  destkit sync plan 7 --json | jq .actions`,
		Args: command.Arguments(1, 1, "the ID of the sync"),
		RunE: func(cmd *cobra.Command, args []string) error { return d.plan(cmd, args[0]) },
	}
	d.rest.Register(cmd)
	f := cmd.Flags()
	// A large source is read whole.
	d.rest.Timeout = 30 * time.Minute
	f.Lookup("request-timeout").DefValue = d.rest.Timeout.String()
	f.StringVar(&d.control, "control-token-env", "", "environment variable `NAME` that holds the token of /_control")
	f.BoolVar(&d.full, "full", false, "plan a full sync: every row, not only what has changed")
	f.Int64Var(&d.limit, "limit", 10, "show at most `N` records of each kind, 0 to 100")
	f.BoolVar(&d.asJSON, "json", false, "print the service's answer as it is")
	command.EndHelp(cmd, planExitTable)
	return cmd
}

// plan queries the service, and shows its answer as text or as it came.
func (d *dryRunner) plan(cmd *cobra.Command, arg string) error {
	id, err := identity("sync", arg)
	if err != nil {
		return err
	}
	if d.limit < 0 || d.limit > 100 {
		return exit.Usagef("--limit must be 0 to 100, not %d", d.limit)
	}
	var found plannedRun
	err = d.show(cmd, fmt.Sprintf("plan sync %d", id), http.MethodPost, fmt.Sprintf("/syncs/%d/plan", id),
		server.DryRunRequest{Full: d.full, Limit: &d.limit}, &found, found.text)
	if err == nil && found.Failure != nil {
		return exit.With(exit.GateFailed)
	}
	return err
}

// plannedRun is the answer of POST /_control/syncs/{id}/plan.
type plannedRun struct{ server.DryRun }

// text is the whole plan, for reading.
func (p *plannedRun) text() string {
	var b strings.Builder
	name := fmt.Sprintf("sync %d", p.SyncID)
	if p.Label != nil {
		name += " (" + foreign.Clip(foreign.Line(*p.Label), 40) + ")"
	}
	foreign.Printf(&b, "%s: a run would read %s and send %s; nothing was sent, %s\n", name,
		quantity.Counted(p.SourceRecordCount, "row"), quantity.Counted(p.SourceRecordUpdates+p.SourceRecordDeletes, "record"), quantity.Roughly(time.Duration(p.DurationMS*float64(time.Millisecond))))
	if p.FullSync {
		foreign.Printf(&b, "  full sync: %s\n", cmp.Or(Text(p.FullSyncReason), "every row is sent"))
	}
	for _, count := range []struct {
		action string
		n      int64
	}{
		{"create", p.Actions.Create}, {"change", p.Actions.Change}, {"resend", p.Actions.Resend}, {"delete", p.Actions.Delete},
		{"refuse", p.Actions.Refuse}, {"skip", p.Actions.Skip}, {"unchanged", p.Actions.Unchanged},
	} {
		foreign.Printf(&b, "  %-10s %s\n", count.action, quantity.Grouped(count.n))
	}
	for _, r := range p.Refused {
		foreign.Printf(&b, "  refused    %s: %s\n", quantity.Grouped(r.Rows), foreign.Clip(foreign.Line(r.Reason), wayWidth))
	}
	for _, r := range p.Doubtful {
		foreign.Printf(&b, "  doubtful   %s: %s\n", quantity.Grouped(r.Rows), foreign.Clip(foreign.Line(r.Reason), wayWidth))
	}
	if f := p.Failure; f != nil {
		foreign.Printf(&b, "  the run would fail: %s\n", foreign.Clip(foreign.Line(joined(f.Code, f.Message)), wayWidth))
		if f.Detail != nil {
			foreign.Printf(&b, "    %s\n", foreign.Clip(foreign.Line(*f.Detail), wayWidth))
		}
	}
	for i := range p.Sample {
		foreign.Println(&b, sampleText(&p.Sample[i]))
	}
	return b.String()
}

// sampleText is one record on one line.
func sampleText(r *server.DryRunRecord) string {
	text := fmt.Sprintf("%-7s %s", r.Action, cmp.Or(foreign.Line(command.CompactJSON(r.Identifier)), "(none)"))
	switch record := command.CompactJSON(r.Record); {
	case record != "":
		text += "  " + foreign.Line(record)
	case r.Bytes > 0:
		text += fmt.Sprintf("  %s", quantity.Counted(int64(r.Bytes), "byte"))
	}
	if r.Reason != nil {
		text += "  " + foreign.Line(*r.Reason)
	}
	return foreign.Clip(text, wayWidth)
}
