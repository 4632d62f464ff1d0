package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/quantity"
)

// isRecording distinguishes a recording from the JSON report of a run by its beginning.
func isRecording(name string) bool {
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 4<<10)
	n, _ := io.ReadFull(file, head)
	head = bytes.Join(bytes.Fields(head[:n]), nil)
	return bytes.HasPrefix(head, []byte(`{"entry":"exchange`)) || bytes.HasPrefix(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte(`{"log":{`))
}

// replayRecording sends a recording to another version of the endpoint.
func replayRecording(cmd *cobra.Command, name, url string, conn *command.Connection, options *conformance.Options, asJSON bool) error {
	if url == "" {
		if url = os.Getenv(command.URLVariable); url == "" {
			return exit.Usagef("%s is a recording: say where its calls are to go with --url URL", name)
		}
	}
	if err := command.CheckURL("--url", url); err != nil {
		return err
	}
	if options.Write && len(options.Objects) == 0 {
		return exit.Usagef("writing the records of a recording needs the name of an object: add --object NAME")
	}
	target, err := conn.Resolve(url, options)
	if err != nil {
		return err
	}
	passive, err := destination.NewPassive(target, conformance.Options{Development: options.Development, Roots: options.Roots})
	if err != nil {
		return command.Failure(err)
	}
	secure := passive.TLSConfig()
	secure.VerifyConnection = passive.VerifyTLS
	header := http.Header{}
	for name, value := range target.Headers {
		header.Set(name, value)
	}
	if target.Token != "" {
		header.Set("Authorization", "Bearer "+target.Token)
	}
	file, err := os.Open(name)
	if err != nil {
		return exit.Usagef("open recording: %w", err)
	}
	defer file.Close()
	replay := &proxy.Replay{
		URL: url, Header: header, Write: options.Write, Objects: options.Objects, MaxBody: proxy.DefaultMaxBody, Secrets: passive.Secrets(),
		Client: &http.Client{
			Transport: &http.Transport{TLSClientConfig: secure}, Timeout: options.BatchTimeout,
			// The service follows no redirect with its token (HTTP-004).
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	result, _, err := replay.Run(cmd.Context(), file)
	switch {
	case cmd.Context().Err() != nil:
		return command.Failure(cmd.Context().Err())
	case err != nil:
		return exit.Usagef("%s: %w", name, err)
	}
	if asJSON {
		if err := command.PrintJSON(cmd.OutOrStdout(), result); err != nil {
			return err
		}
	} else {
		printRecordingReplay(cmd.OutOrStdout(), result)
	}
	switch {
	case result.Different > 0:
		return exit.With(exit.GateFailed)
	case result.Unanswered > 0 || result.Sent == 0:
		return exit.With(exit.NotTested)
	}
	return nil
}

// printRecordingReplay shows an example of each kind of difference, then the sums.
func printRecordingReplay(w io.Writer, r *proxy.ReplayReport) {
	for _, g := range r.Groups {
		what := foreign.Line(g.Method)
		if g.Object != "" {
			what += " of " + foreign.Clip(foreign.Line(g.Object), 60)
		}
		foreign.Printf(w, "%s: %s differs in %d of its answers\n  call %d  then  %s\n          now   %s\n", what, g.Place, g.Count, g.Number, foreign.Line(g.Was), foreign.Line(g.Is))
	}
	for _, why := range slices.Sorted(maps.Keys(r.NotSent)) {
		foreign.Printf(w, "%d not sent: %s\n", r.NotSent[why], why)
	}
	if r.Unanswered > 0 {
		foreign.Printf(w, "%d got no complete response\n", r.Unanswered)
	}
	if r.Unreached != "" {
		foreign.Printf(w, "%s\n", r.Unreached)
	}
	foreign.Printf(w, "%s sent: %s %s the same, %d %s\n", quantity.Count(r.Sent, "call"), quantity.Count(r.Same, "answer"), quantity.Verb(r.Same, "means", "mean"), r.Different, quantity.Verb(r.Different, "differs", "differ"))
}

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
	verdicts := lists.Of(all, func(id string) replayed { return verdictOf(id, now[id]) })
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
	return journalled(&o, true, func() (*conformance.Report, error) { return destination.Run(ctx, target, o) })
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
