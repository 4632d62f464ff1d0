package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
)

// replayed is what became of one check of a report.
type replayed struct{ check, word, why string }

// The words for it.
const (
	nowFixed    = "fixed"
	stillBroken = "still broken"
	notDecided  = "not decided"
)

// judgeAgain judges the checks whose exchanges were sent again, as the report's run
// did: a response that differs is no proof that the rule holds. What writes needs
// --write, as the replay does.
func judgeAgain(ctx context.Context, target destination.Target, o conformance.Options, old *conformance.Report, results []destination.ReplayResult) ([]replayed, error) {
	var sent, all []string
	for _, r := range results {
		if !slices.Contains(all, r.Check) {
			all = append(all, r.Check)
		}
		if r.Skipped == "" && !slices.Contains(sent, r.Check) {
			sent = append(sent, r.Check)
		}
	}
	now := map[string]conformance.CheckResult{}
	if len(sent) > 0 {
		result, err := judgeOnly(ctx, target, o, old, sent)
		if err != nil {
			return nil, err
		}
		for _, check := range result.Checks {
			now[check.ID] = check
		}
	}
	var verdicts []replayed
	for _, id := range all {
		verdicts = append(verdicts, verdictOf(id, now[id]))
	}
	for i := range results {
		at := slices.IndexFunc(verdicts, func(v replayed) bool { return v.check == results[i].Check })
		results[i].Verdict = verdicts[at].word
	}
	return verdicts, nil
}

// judgeOnly runs the checks alone.
func judgeOnly(ctx context.Context, target destination.Target, o conformance.Options, old *conformance.Report, ids []string) (*conformance.Report, error) {
	o.Select, o.Profile, o.Timeout, o.Version = ids, old.Profile, 2*time.Minute, command.ReadBuild().Version
	if !o.Write {
		o.Objects = nil
		return destination.Run(ctx, target, o)
	}
	if len(o.Objects) == 0 {
		o.Objects = old.Settings.Objects
	}
	o.Journal = journalName(time.Now())
	result, err := destination.Run(ctx, target, o)
	var usage *conformance.UsageError
	switch {
	case err == nil:
		dropJournal(o.Journal, result)
	case errors.As(err, &usage):
		os.Remove(o.Journal) // refused before the first batch: it is empty
	}
	return result, err
}

// verdictOf puts the status of a check that was judged again into a word.
func verdictOf(id string, now conformance.CheckResult) replayed {
	switch now.Status {
	case conformance.Pass:
		return replayed{id, nowFixed, ""}
	case conformance.Fail, conformance.Warn, conformance.Flaky:
		return replayed{id, stillBroken, ""}
	case "":
		return replayed{id, notDecided, ": no request of it was sent"}
	}
	return replayed{id, notDecided, ": " + now.Reason}
}

// replayStatus is 1 when a check is still broken, 3 when one is not decided or a
// request was sent and got no complete response.
func replayStatus(results []destination.ReplayResult, verdicts []replayed) int {
	status := exit.OK
	for _, v := range verdicts {
		if v.word == stillBroken {
			return exit.GateFailed
		}
		if v.word == notDecided {
			status = exit.NotTested
		}
	}
	for _, r := range results {
		if r.Skipped == "" && (r.After.Response == nil || r.After.Error != "") {
			status = exit.NotTested
		}
	}
	return status
}
