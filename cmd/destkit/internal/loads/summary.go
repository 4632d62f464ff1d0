package loads

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// WriteSummary writes the result of a load for people.
func WriteSummary(w io.Writer, r *loadgen.Result) {
	foreign.Printf(w, "%s\n", title(r))
	foreign.Printf(w, "  ended            %s after %s\n", r.Ended, time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
	foreign.Printf(w, "  requests         %s, %s per second\n", quantity.Grouped(r.Requests), quantity.Rate(r.RequestsPerSecond))
	if r.Service == nil {
		foreign.Printf(w, "  records          %s acknowledged, %s per second; %s sent, %s per second\n",
			quantity.Grouped(r.Acknowledged), quantity.Rate(r.AcknowledgedPerSecond), quantity.Grouped(r.Records), quantity.Rate(r.RecordsPerSecond))
	} else {
		writeService(w, r.Service)
	}
	foreign.Printf(w, "  errors           %s\n", quantity.Grouped(r.Errors))
	if r.Requests > 0 {
		writeTimes(w, r)
	}
	if r.Verification != nil {
		writeVerified(w, r.Verification)
	}
	writeErrors(w, r)
	if r.Search != nil {
		writeSearch(w, r.Search)
	}
	if d := r.Declared; d != nil && d.Kept != nil {
		word := "kept"
		if !*d.Kept {
			word = "NOT kept"
		}
		foreign.Printf(w, "the declared speed was %s: %s records/s in %s of %s at once, %s requests/s\n", word,
			quantity.Grouped(d.RecordsPerSecond), quantity.Count(d.Parallel, "batch"), quantity.Grouped(d.BatchSize), quantity.Grouped(d.RateLimit))
	}
	if d := r.Declared; d != nil && d.Rests != nil {
		foreign.Printf(w, "Retry-After was followed %s, %.3g s without requests\n", quantity.Count(d.Rests.Times, "time"), d.Rests.Seconds)
	}
	writeChanges(w, r)
	for _, f := range r.Replicas {
		foreign.Printf(w, "  %s: %s, %s per second, on %s, %s failed; latency p50 %s p99 %s max %s ms\n", f.Address, quantity.Counted(f.Requests, "request"),
			quantity.Rate(f.RequestsPerSecond), quantity.Count(f.Connections, "connection"), quantity.Grouped(f.FailedRequests), quantity.Milliseconds(f.Latency.P50), quantity.Milliseconds(f.Latency.P99), quantity.Milliseconds(f.Latency.Max))
	}
	for _, note := range r.Notes {
		foreign.Printf(w, "note: %s\n", note)
	}
	for _, t := range r.Thresholds {
		foreign.Println(w, t)
	}
	writeKeys(w, r)
}

func title(r *loadgen.Result) string {
	how := map[string]string{"closed": "closed loop", "open": "open loop", "as-declared": "as declared", "search": "search"}[r.Load.Mode]
	if r.Load.Scenario != "" {
		how = "scenario " + r.Load.Scenario + ", " + how
	}
	if r.Load.Rate > 0 && r.Load.Mode != "search" {
		how += fmt.Sprintf(" at %s requests/s", quantity.Rate(r.Load.Rate))
	}
	if r.Load.Scenario != "" {
		return fmt.Sprintf("%s: %s, %s", r.Target.Address, how, quantity.Count(r.Load.Connections, "client"))
	}
	objects := lists.Of(r.Target.Objects, func(o loadgen.Share) string { return o.Name })
	return fmt.Sprintf("%s, %s: %s, batches of %s, %s, seed %d",
		r.Target.Address, strings.Join(objects, " and "), how, quantity.Grouped(int64(r.Load.BatchSize)), quantity.Count(r.Load.Connections, "connection"), r.Load.Seed)
}

// writeService reports what the clients of a service have done.
func writeService(w io.Writer, s *loadgen.ServiceFigures) {
	if s.Lists+s.Items > 0 {
		foreign.Printf(w, "  lists            %s walked to the end, %s on all pages\n", quantity.Grouped(s.Lists), quantity.Counted(s.Items, "item"))
	}
	if r := s.Runs; r != nil {
		foreign.Printf(w, "  runs             %s\n", r.Text())
		if r.Failure != "" {
			foreign.Printf(w, "                   one failed with: %s\n", r.Failure)
		}
		if r.Completed > 0 {
			foreign.Printf(w, "                   from the trigger to the end p50 %s p99 %s max %s ms\n", quantity.Milliseconds(r.TimeToEnd.P50), quantity.Milliseconds(r.TimeToEnd.P99), quantity.Milliseconds(r.TimeToEnd.Max))
		}
	}
	for _, c := range s.Calls {
		foreign.Printf(w, "  %s: %s, %s per second, %s failed; latency p50 %s p99 %s max %s ms\n", c.Call, quantity.Counted(c.Requests, "request"),
			quantity.Rate(c.RequestsPerSecond), quantity.Grouped(c.FailedRequests), quantity.Milliseconds(c.Latency.P50), quantity.Milliseconds(c.Latency.P99), quantity.Milliseconds(c.Latency.Max))
	}
}

func writeTimes(w io.Writer, r *loadgen.Result) {
	if r.Latency.Max == 0 {
		foreign.Println(w, "  milliseconds     none: no request was answered with results")
		return
	}
	foreign.Printf(w, "  milliseconds    %9s %9s %9s %9s %9s %9s\n", "p50", "p90", "p95", "p99", "p99.9", "max")
	for _, t := range []struct {
		name string
		loadgen.Times
	}{{"latency", r.Latency}, {"service time", r.ServiceTime}} {
		foreign.Printf(w, "    %-13s %9s %9s %9s %9s %9s %9s\n", t.name, quantity.Milliseconds(t.P50), quantity.Milliseconds(t.P90), quantity.Milliseconds(t.P95), quantity.Milliseconds(t.P99), quantity.Milliseconds(t.P999), quantity.Milliseconds(t.Max))
	}
	if r.Load.Mode == "closed" {
		return
	}
	if n := r.Generator.Unsent + r.Generator.Unanswered; n > 0 {
		foreign.Printf(w, "    without %s that %s due and never sent or never answered\n", quantity.Counted(n, "request"), quantity.Verb(n, "was", "were"))
	}
	if waits(r) {
		foreign.Printf(w, "    latency is longer than service time, of requests: %s waited for a free connection, %s started late by the generator, %s never sent\n",
			quantity.Grouped(r.Generator.Queued), quantity.Grouped(r.Generator.Late), quantity.Grouped(r.Generator.Unsent))
	}
}

// waits reports whether any percentile shows that requests waited to be sent.
func waits(r *loadgen.Result) bool {
	l, s := r.Latency, r.ServiceTime
	for _, p := range [][2]float64{{l.P50, s.P50}, {l.P75, s.P75}, {l.P90, s.P90}, {l.P95, s.P95}, {l.P99, s.P99}, {l.P999, s.P999}, {l.Max, s.Max}} {
		if gap := p[0] - p[1]; gap > 1 && gap > p[1]/4 {
			return true
		}
	}
	return false
}

// writeVerified reports verified and unverified keys.
func writeVerified(w io.Writer, v *loadgen.Verification) {
	foreign.Printf(w, "  verified         %s\n", v.Text())
	for _, u := range v.Unverified {
		foreign.Printf(w, "  not verified     %s: %s\n", quantity.Grouped(u.Count), u.Reason)
	}
}

// writeChanges reports the limits that replies stated on the way.
func writeChanges(w io.Writer, r *loadgen.Result) {
	if r.Declared == nil {
		return
	}
	for i, c := range r.Declared.SpeedChanges {
		const shown = 5
		if i == shown {
			foreign.Printf(w, "the declared speed changed %s\n", quantity.Count(len(r.Declared.SpeedChanges)-shown, "further time"))
			break
		}
		not := ""
		if c.NotFollowed != "" {
			not = " (not followed: " + c.NotFollowed + ")"
		}
		foreign.Printf(w, "the declared speed changed and was followed from %.1f s on: %s records/s in %s of %s at once%s\n",
			c.At, quantity.Grouped(c.RecordsPerSecond), quantity.Counted(c.Parallel, "batch"), quantity.Grouped(c.BatchSize), not)
	}
	if len(r.Declared.Changes) == 0 {
		return
	}
	const shown = 5
	changes := r.Declared.Changes
	list := lists.Of(changes[:min(len(changes), shown)], func(c loadgen.LimitChange) string {
		return fmt.Sprintf("%s from %.1f s on", quantity.Grouped(c.RateLimit), c.At)
	})
	more := ""
	if n := len(changes) - shown; n > 0 {
		more = fmt.Sprintf(", and %s", quantity.Count(n, "further change"))
	}
	foreign.Printf(w, "the declared limit changed and was followed: %s requests/s, %s%s; %s requests/s in the mean\n",
		quantity.Grouped(r.Declared.RateLimit), strings.Join(list, ", "), more, quantity.Rate(r.Load.Rate))
}

// messagesShown bounds how many messages of errors are shown.
const messagesShown = 10

func writeErrors(w io.Writer, r *loadgen.Result) {
	for i, e := range r.ErrorMessages {
		if i == messagesShown {
			foreign.Printf(w, "  and %s, in the JSON\n", quantity.Count(len(r.ErrorMessages)-i, "further message"))
			return
		}
		example := ""
		switch {
		case e.Example.Identifier != "":
			example = ", for example " + e.Example.Identifier
		case e.Example.RequestID != "":
			example = ", for example request " + e.Example.RequestID
		}
		if e.Example.Detail != "" {
			example += " (" + e.Example.Detail + ")"
		}
		foreign.Printf(w, "  %9s x %s: %s%s\n", quantity.Grouped(e.Count), e.Kind, e.Message, example)
	}
}

func writeSearch(w io.Writer, s *loadgen.SearchResult) {
	if s.Rate <= 0 || s.Suggested == nil {
		foreign.Printf(w, "no rate holds the goal %s\n", s.Goal)
		return
	}
	word := "confirmed"
	if !s.Confirmed {
		word = "not confirmed"
	}
	foreign.Printf(w, "highest rate that holds %s: %s requests/s, %s records/s (%s), with batches of %s on %s\n",
		s.Goal, quantity.Rate(s.Rate), quantity.Rate(s.RecordsPerSecond), word, quantity.Grouped(int64(s.BatchSize)), quantity.Count(s.Connections, "connection"))
	foreign.Printf(w, "knee: %s %s the closed-loop maximum of %s requests/s; more only wait for each other\n", quantity.Count(s.Knee, "connection"), quantity.Verb(s.Knee, "reaches", "reach"), quantity.Rate(s.ClosedMaximum))
	if len(s.Alike) > 0 {
		foreign.Printf(w, "as fast within 5 %%: batches of %s\n", quantity.List(lists.Of(s.Alike, strconv.Itoa)))
	}
	foreign.Printf(w, "get_sync_speed could say, with a margin of %.0f %%:\n  {\"maximum_batch_size\":%d,\"maximum_parallel_batches\":%d,\"maximum_records_per_second\":%d}\n",
		s.Margin*100, s.Suggested.BatchSize, s.Suggested.Parallel, s.Suggested.RecordsPerSecond)
}

func writeKeys(w io.Writer, r *loadgen.Result) {
	if c := r.Cleanup; c != nil {
		foreign.Printf(w, "cleaned up: %s deleted, %s left\n", quantity.Counted(c.Deleted, "record"), quantity.Grouped(c.Left))
		for _, reason := range c.Reasons {
			foreign.Printf(w, "  %s\n", reason)
		}
		if c.Left == 0 {
			return
		}
	}
	for _, k := range r.Keys {
		if k.Count > 0 {
			foreign.Printf(w, "keys written into %s: %s from %s to %s\n", k.Object, k.Field, k.First, k.Last)
		}
	}
	if r.CleanCommand != "" {
		foreign.Printf(w, "to delete them: %s\n", r.CleanCommand)
	}
}
