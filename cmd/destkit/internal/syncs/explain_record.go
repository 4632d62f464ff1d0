package syncs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/api"
)

// recordExplainer holds the flags of `destkit explain-record`.
type recordExplainer struct {
	controlled
	run, sync int64
	verbose   bool
}

// explainExitTable is in the help text of explain-record.
const explainExitTable = `Exit status:
  0  explained
  2  usage or configuration: a flag, no such run or record
  3  the service gave no answer or refused the token`

// NewExplainRecord is a door to the control API: the published API has no such
// call.
func NewExplainRecord() *cobra.Command {
	var e recordExplainer
	cmd := &cobra.Command{
		Use:   "explain-record IDENTIFIER",
		Short: "Show one record's way through a run of a sync",
		Long: `Show one record's way through a run of a sync: its row in the source as it is
now, the record that this is mapped to, what the comparison decided and why,
each attempt to send it with the call that carried it, the verdict, and when it
is sent again. It asks the control API of 'destkit serve', which answers on
loopback, or with a control token.

IDENTIFIER is the value of the primary identifier, as text or as JSON: 42 and
'"42"' find the same record.`,
		Example: `  destkit explain-record --sync-run 12 ada@example.com
  destkit explain-record --sync 7 42 --verbose
  destkit explain-record --sync 7 42 --json | jq .attempts`,
		Args: command.Arguments(1, 1, "the IDENTIFIER of the record"),
		RunE: func(cmd *cobra.Command, args []string) error { return e.explain(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Int64Var(&e.run, "sync-run", 0, "the run `N`")
	f.Int64Var(&e.sync, "sync", 0, "the latest run of the sync `N`")
	e.rest.Register(cmd)
	f.StringVar(&e.control, "control-token-env", "", "environment variable `NAME` that holds the token of /_control")
	f.BoolVar(&e.asJSON, "json", false, "print the service's answer as it is")
	f.BoolVarP(&e.verbose, "verbose", "v", false, "show requests and responses whole")
	cmd.MarkFlagsMutuallyExclusive("sync-run", "sync")
	command.EndHelp(cmd, explainExitTable)
	return cmd
}

// explain queries the service, and shows its answer as text or as it came.
func (e *recordExplainer) explain(cmd *cobra.Command, identifier string) error {
	if f := cmd.Flags(); !f.Changed("sync-run") && !f.Changed("sync") {
		return exit.Usagef("in which run? --sync-run N, or --sync N for the latest run of a sync")
	}
	query := url.Values{"identifier": {identifier}}
	for _, id := range []struct {
		name, flag string
		value      int64
	}{{"sync_run_id", "sync-run", e.run}, {"sync_id", "sync", e.sync}} {
		if !cmd.Flags().Changed(id.flag) {
			continue
		}
		if id.value < 1 {
			return exit.Usagef("--%s must be a whole number from 1, not %d", id.flag, id.value)
		}
		query.Set(id.name, strconv.FormatInt(id.value, 10))
	}
	var way recordWay
	return e.show(cmd, "explain "+foreign.Clip(foreign.Line(identifier), 100), http.MethodGet, "/explain?"+query.Encode(), nil, &way,
		func() string { return way.text(e.verbose) })
}

// controlled holds the flags of a command that calls the control API.
type controlled struct {
	rest    Flags
	control string
	asJSON  bool
}

// show calls it, and prints the answer as text, or as it came. what was done to which
// thing comes first in an error.
func (c *controlled) show(cmd *cobra.Command, what, method, path string, body, into any, text func() string) error {
	// The key of the workspace is none of the control API's business.
	c.rest.Token = command.TokenFlag{Name: "control-token-env", Variable: c.control}
	client, err := c.rest.Open()
	if err != nil {
		return err
	}
	var answer json.RawMessage
	err = client.Control(cmd.Context(), method, path, body, &answer)
	var refused *Error
	switch {
	case errors.As(err, &refused) && (refused.Code == http.StatusUnauthorized || refused.Code == http.StatusForbidden):
		return exit.Untested(fmt.Errorf("%s: %w; from elsewhere than loopback it needs --control-token-env", what, err))
	case err != nil:
		return Failure(what, err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return exit.Untested(fmt.Errorf("read the service's answer: %w", err))
	}
	if c.asJSON {
		foreign.Print(cmd.OutOrStdout(), string(foreign.JSON(answer))+"\n")
	} else {
		foreign.Print(cmd.OutOrStdout(), text())
	}
	return nil
}

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
