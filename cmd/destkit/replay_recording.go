package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/quantity"
)

// isRecording tells a recording from the JSON report of a run by its beginning.
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
		return command.JudgeFailure(err)
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
		URL: url, Header: header, Write: options.Write, Objects: options.Objects, MaxBody: proxy.DefaultMaxBody,
		Client: &http.Client{
			Transport: &http.Transport{TLSClientConfig: secure}, Timeout: options.BatchTimeout,
			// The service follows no redirect with its token (HTTP-004).
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	result, _, err := replay.Run(cmd.Context(), file)
	switch {
	case cmd.Context().Err() != nil:
		return command.JudgeFailure(cmd.Context().Err())
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
	foreign.Printf(w, "%s sent: %s %s the same, %d %s\n", quantity.Count(r.Sent, "call"), quantity.Count(r.Same, "answer"), quantity.Verb(r.Same, "means", "mean"), r.Different, quantity.Verb(r.Different, "differs", "differ"))
}
