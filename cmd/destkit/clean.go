package main

import (
	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/foreign"
)

// newClean is the second chance of a run that did not get to its own clean-up.
// It never looks for records by itself: only the journal knows our records.
func newClean() *cobra.Command {
	var options conformance.Options
	var conn command.Connection
	var hooks string
	var read command.Reading
	var keys command.OwnKeys
	var url string
	cmd := &cobra.Command{
		Use:   "clean --journal FILE [URL]",
		Short: "Delete the records that an interrupted run left behind",
		Long: `Resume the clean-up of a run that was interrupted or killed. Only keys that
stand in its journal are deleted, through "delete" batches where the object
accepts them, else through the hook "cleanup". A key that does not carry the
run, as its template has it, is never deleted, whatever the journal says; for a
run with keys of its own give its --key-template or --key-range. The journal of
a judged service names the beginnings of names; give the base URL then. What is
left is printed, one line for each record, and the exit status is 5.

That records are gone is said when it was seen: by the read-back hook, or by
updates that are skipped. Without either they count as deleted by
acknowledgement only: the exit status is 0, and the journal keeps them for a
clean-up with a hook.

The URL is that of --url, of the argument, of $DESTKIT_URL or of the journal,
the first that is there. A journal is a file that may have been changed: the
token of $DESTKIT_TOKEN goes to a public address that it names only with
--token-env.`,
		Example: `  destkit clean --journal destkit-journal-20270131-101500-77.ndjson
  destkit clean --journal run.ndjson --hooks hooks.yaml \
      https://example.com/destination
  destkit clean --journal run.ndjson \
      --readback-url https://example.com/readback \
      https://example.com/destination`,
		Args: command.Arguments(0, 1, "the URL of the endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := cleanedURL(cmd, url, args, options.Journal)
			if err != nil {
				return err
			}
			options.Version = command.ReadBuild().Version
			target, err := conn.Resolve(url, &options)
			if err != nil {
				return err
			}
			if suite, _, err := conformance.ReadJournal(options.Journal); err == nil && suite == conformance.SuiteService {
				return cleanService(cmd, url, options)
			}
			if err := keys.Resolve(&options); err != nil {
				return err
			}
			if hooks != "" {
				if options.Hooks, err = configfile.ReadHooks(hooks); err != nil {
					return err
				}
			}
			if err := read.Resolve(&options); err != nil {
				return err
			}
			residue, err := destination.Clean(cmd.Context(), target, options)
			if err != nil {
				return command.Failure(err)
			}
			return printResidue(cmd, residue, "records")
		},
	}
	cmd.Flags().StringVar(&options.Journal, "journal", "", "write-ahead journal `FILE` of the run")
	cmd.Flags().StringVar(&url, "url", "", "`URL` of the endpoint (default: that of the journal, unless it holds a secret)")
	cmd.Flags().StringVar(&hooks, "hooks", "", "YAML `FILE` with the hook cleanup")
	keys.Register(cmd)
	read.Register(cmd, &options)
	conn.Register(cmd, &options)
	return cmd
}

// cleanService deletes what a judged service still holds of a run.
func cleanService(cmd *cobra.Command, url string, options conformance.Options) error {
	j := serviceJudging{target: service.Target{BaseURL: url, Roots: options.Roots}}
	if err := j.resolveTokens(); err != nil {
		return err
	}
	o := service.Options{Options: options, NewSimulator: newStageSimulator, Listen: j.listen}
	residue, err := service.Clean(cmd.Context(), j.target, o)
	if err != nil {
		return command.Failure(err)
	}
	return printResidue(cmd, residue, "things")
}

// printResidue reports deleted and remaining records.
func printResidue(cmd *cobra.Command, residue *conformance.Residue, what string) error {
	w := cmd.OutOrStdout()
	left := len(residue.Refused) + len(residue.Unknown)
	foreign.Printf(w, "%d %s deleted", residue.Cleaned, what)
	if residue.Unverified > 0 {
		foreign.Printf(w, ", %d by acknowledgement only (not verified)", residue.Unverified)
	}
	if left > 0 || residue.Unverified == 0 { // none is said only when that was seen
		foreign.Printf(w, ", %d left behind", left)
	}
	foreign.Println(w)
	if residue.Unverified > 0 {
		foreign.Printf(w, "  not verified: %s\n", residue.UnverifiedReason)
	}
	// Refused means that the record was not deleted or is there all the same;
	// unknown that its write had no answer.
	for _, part := range []struct {
		word string
		left []conformance.Leftover
	}{{"refused", residue.Refused}, {"unknown", residue.Unknown}} {
		for _, l := range part.left {
			foreign.Printf(w, "  %s %s %s = %s: %s\n", part.word, l.Object, l.Field, l.Identifier, l.Reason)
		}
	}
	if left > 0 {
		return exit.With(exit.Residue)
	}
	return nil
}
