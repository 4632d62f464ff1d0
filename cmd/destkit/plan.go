package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// newPlan is for the owner of a production system: it reports what a run
// would write before anything is written.
func newPlan() *cobra.Command {
	var j judging
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan [URL]",
		Short: "Say what conform would send, and what would stay undecided",
		Long: `Make the planning calls that read, write nothing, and say what 'destkit conform'
would do with the same flags: which objects it would write into, how many
records at most, what their keys look like, how they are removed again, which
checks would not run, and which MUSTs would stay undecided. The URL can stand in
$DESTKIT_URL instead. The flags are those of conform: docs/judge.md.`,
		Example: `  destkit plan https://example.com/destination --token-env TOKEN
  destkit plan https://example.com/destination --write --object contact --json`,
		Args: command.Arguments(0, 1, "the URL of the endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := command.EndpointURL(cmd, args)
			if err != nil {
				return err
			}
			target, options, err := j.resolve(cmd, url)
			if err != nil {
				return err
			}
			if screen := cmd.OutOrStdout(); !asJSON {
				j.settings.Announce(screen)
			} else {
				j.settings.Announce(cmd.ErrOrStderr())
			}
			plan, err := destination.Plan(cmd.Context(), target, options)
			if err != nil {
				return command.Failure(j.settings.Placed(err))
			}
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), plan)
			}
			printPlan(cmd.OutOrStdout(), plan, j.verbose)
			return nil
		},
	}
	j.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newPlanService())
	return cmd
}

// newPlanService is the same for a service; nothing is sent at all.
func newPlanService() *cobra.Command {
	var j serviceJudging
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "service BASE_URL",
		Short: "Say what conform service would judge and make",
		Long: `Say which checks 'destkit conform service' would judge with the same flags,
which would not run and why, and what would be made in the service on the way.
Nothing is sent.`,
		Example: `  destkit plan service https://api.example.com/api/v1
  destkit plan service http://127.0.0.1:8080/api/v1 --json \
      --control-url http://127.0.0.1:8080/_control`,
		Args: command.Arguments(1, 1, "the base URL of the API, which ends in /api/v1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := j.resolve(cmd, args[0])
			if err != nil {
				return err
			}
			plan, err := service.Plan(j.target, options)
			if err != nil {
				return command.Failure(err)
			}
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), plan)
			}
			printServicePlan(cmd.OutOrStdout(), plan, j.verbose)
			return nil
		},
	}
	j.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printServicePlan has no objects and records to speak of.
func printServicePlan(w io.Writer, p *conformance.PlanReport, verbose bool) {
	foreign.Printf(w, "%s\n", p.Target)
	printPlannedChecks(w, p, verbose)
	printUndecided(w, p)
}

// printPlan puts first what a careful owner needs first: which objects, how
// many records, what keys, and how they are removed.
func printPlan(w io.Writer, p *conformance.PlanReport, verbose bool) {
	foreign.Printf(w, "%s\n", p.Target)
	for _, replica := range p.Replicas {
		foreign.Printf(w, "and in turn %s\n", replica)
	}
	if p.Speed != "" {
		foreign.Printf(w, "declared speed: %s\n", p.Speed)
	}
	foreign.Printf(w, "\nobjects\n")
	for _, o := range p.Objects {
		mark, use := " ", ""
		if o.Chosen {
			mark, use = "*", ", clean-up: "+o.Cleanup
		}
		foreign.Printf(w, "%s %s: %s; %s, identifier %s%s\n", mark, o.Name,
			strings.Join(o.Operations, ", "), quantity.Count(o.Fields, "field"), cmp.Or(o.Identifier, "none"), use)
	}
	if p.Records > 0 {
		foreign.Printf(w, "\nwould write at most %s; keys look like\n", quantity.Count(p.Records, "record"))
		for _, key := range p.Keys {
			foreign.Printf(w, "  %s\n", key)
		}
	} else {
		foreign.Printf(w, "\nwould write nothing\n")
	}
	printPlannedChecks(w, p, verbose)
	printUndecided(w, p)
}

// printUndecided ends a plan: what stays open, and what else is worth knowing.
func printUndecided(w io.Writer, p *conformance.PlanReport) {
	if len(p.Undecidable) > 0 {
		foreign.Printf(w, "\n%d MUSTs cannot be decided with these settings\n%s\n", len(p.Undecidable), command.Indent(strings.Join(p.Undecidable, " ")))
	}
	for i, note := range p.Notes {
		if i == 0 {
			foreign.Printf(w, "\nnotes\n")
		}
		foreign.Println(w, command.Indent(note))
	}
}

// printPlannedChecks groups the checks that would not run by what they lack.
func printPlannedChecks(w io.Writer, p *conformance.PlanReport, verbose bool) {
	run := 0
	var order [2][]string // reasons of what does not run, and of what may be in vain
	lacking := map[string][]string{}
	for _, c := range p.Checks {
		part := 0
		if c.Runs {
			run, part = run+1, 1
		}
		if c.Runs && c.Reason == "" {
			continue
		}
		why := cmp.Or(c.Reason, c.Decider)
		if lacking[why] == nil {
			order[part] = append(order[part], why)
		}
		lacking[why] = append(lacking[why], c.ID)
	}
	heads := [2]string{fmt.Sprintf("%s would not run", quantity.Count(len(p.Checks)-run, "check")), fmt.Sprintf("%s would run", quantity.Count(run, "check"))}
	for part, reasons := range order {
		foreign.Printf(w, "\n%s\n", heads[part])
		for _, why := range reasons {
			foreign.Printf(w, "%s\n%s\n", command.Indent(why), command.Indent("  "+strings.Join(lacking[why], " ")))
		}
	}
	if !verbose {
		return
	}
	for _, c := range p.Checks {
		if c.Runs {
			foreign.Printf(w, "  %-9s %-6s %s\n", c.ID, c.Level, c.Title)
		}
	}
}
