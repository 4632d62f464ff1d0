package syncs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

// recordExplainer holds the flags of `destkit explain-record`.
type recordExplainer struct {
	rest            Flags
	run, sync       int64
	control         string
	asJSON, verbose bool
}

// explainExitTable stands in the help text of explain-record.
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

// explain asks the service, and shows its answer as text or as it came.
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
	// The key of the workspace is none of the control API's business.
	e.rest.Token = command.TokenFlag{Name: "control-token-env", Variable: e.control}
	client, err := e.rest.Open()
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.Control(cmd.Context(), http.MethodGet, "/explain?"+query.Encode(), nil, &answer); err != nil {
		return controlFailure("explain "+foreign.Clip(foreign.Line(identifier), 100), err)
	}
	if e.asJSON {
		foreign.Print(cmd.OutOrStdout(), string(foreign.JSON(answer))+"\n")
		return nil
	}
	var way recordWay
	if err := json.Unmarshal(answer, &way); err != nil {
		return exit.Untested(fmt.Errorf("read the service's answer: %w", err))
	}
	foreign.Print(cmd.OutOrStdout(), way.text(e.verbose))
	return nil
}

// controlFailure is restFailure for calls of the control API.
func controlFailure(what string, err error) error {
	var refused *Error
	if errors.As(err, &refused) && (refused.Code == http.StatusUnauthorized || refused.Code == http.StatusForbidden) {
		return exit.Untested(fmt.Errorf("%s: %w; from elsewhere than loopback it needs --control-token-env", what, err))
	}
	return Failure(what, err)
}
