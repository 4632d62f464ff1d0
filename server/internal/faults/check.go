package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// RetryAfter is the value of a Retry-After header: seconds from 0 on, or a
// date (both are seen).
type RetryAfter struct {
	seconds int64
	date    string
	asDate  bool
}

// maxRetryAfter is ten years in seconds: a date must come out of it.
const maxRetryAfter = 10 * 365 * 24 * 3600

// In is so many seconds from 0 on, as the number that most services send.
func In(seconds int64) *RetryAfter { return &RetryAfter{seconds: seconds} }

// UnmarshalJSON takes 30, "30", "Wed, 02 Dec 2026 08:00:00 GMT", and "date:30"
// for the date in 30 s on the service's clock.
func (r *RetryAfter) UnmarshalJSON(text []byte) error {
	word := strings.Trim(string(text), `"`)
	word, r.asDate = strings.CutPrefix(word, "date:")
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		if n < 0 || n > maxRetryAfter {
			return problem.InvalidField("retry_after", "must be from 0 to %d seconds", maxRetryAfter)
		}
		r.seconds = n
		return nil
	}
	if _, err := http.ParseTime(word); err != nil || r.asDate {
		return problem.InvalidField("retry_after", `must be seconds such as 30, an HTTP date, or "date:30" for the date in 30 s`)
	}
	r.date = word
	return nil
}

// MarshalJSON writes what was given.
func (r RetryAfter) MarshalJSON() ([]byte, error) {
	switch {
	case r.date != "":
		return json.Marshal(r.date)
	case r.asDate:
		return json.Marshal("date:" + strconv.FormatInt(r.seconds, 10))
	}
	return json.Marshal(r.seconds)
}

// header is the value on the wire. A date is one of the service's clock, which
// a test can move past it.
func (r *RetryAfter) header(now time.Time) string {
	switch {
	case r.date != "":
		return r.date
	case r.asDate:
		return now.Add(time.Duration(r.seconds) * time.Second).UTC().Format(http.TimeFormat)
	}
	return strconv.FormatInt(r.seconds, 10)
}

// check fills in the defaults and reports all mistakes together.
func (f *Fault) check(ids []string) (latency time.Duration, err error) {
	var problems []api.Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, api.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if f.Phase == "" {
		f.Phase = phaseBefore
	}
	if f.Phase != phaseBefore && f.Phase != phaseAfter {
		add("phase", "must be before or after")
	}
	// Before the defaults are filled in, which are not in the request.
	f.checkParameters(add)
	switch f.Kind {
	case faultLatency:
		latency, err = time.ParseDuration(f.Latency)
		if err != nil || latency <= 0 || latency > maxLatency {
			add("latency", "must be a duration such as 250ms, above 0 and at most %s", maxLatency)
		}
	case faultStatus:
		if f.Status == 0 {
			f.Status = http.StatusInternalServerError
		}
		if f.Status < 400 || f.Status > 599 {
			add("status", "must be from 400 to 599")
		}
	case faultRateLimited:
		// A 429 without Retry-After is the kind status with status 429.
		f.Status = http.StatusTooManyRequests
		if f.RetryAfter == nil {
			f.RetryAfter = &RetryAfter{seconds: 1}
		}
	case faultDrop:
	default:
		add("kind", "must be latency, status, rate_limited or drop")
	}
	if f.Message == "" && f.Status != 0 {
		f.Message = "a fault was injected"
		if f.Kind == faultRateLimited {
			f.Message = "too many requests; wait as Retry-After says"
		}
	}
	// JSON cannot hold these; a caller in Go can.
	if r := f.RetryAfter; r != nil && (r.seconds < 0 || r.seconds > maxRetryAfter) {
		add("retry_after", "must be from 0 to %d seconds", maxRetryAfter)
	}
	f.Trigger.check(ids, add)
	if len(problems) > 0 {
		return 0, problem.Invalid(problems)
	}
	return latency, nil
}

// checkParameters refuses what the kind does not use: a fault that does less
// than its author believes is worse than none.
func (f *Fault) checkParameters(add func(field, format string, args ...any)) {
	for _, p := range []struct {
		name  string
		given bool
		kinds []string
	}{
		{"status", f.Status != 0, []string{faultStatus}},
		{"message", f.Message != "", []string{faultStatus, faultRateLimited}},
		{"retry_after", f.RetryAfter != nil, []string{faultStatus, faultRateLimited}},
		{"latency", f.Latency != "", []string{faultLatency}},
	} {
		if p.given && !slices.Contains(p.kinds, f.Kind) {
			add(p.name, "goes with the kind %s", strings.Join(p.kinds, " or "))
		}
	}
}

// check refuses what could never strike or always would: a fault with a slip in
// it must not look armed.
func (t *Trigger) check(ids []string, add func(field, format string, args ...any)) {
	t.checkOperation(ids, add)
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"after_n", t.AfterN}, {"first_n", t.FirstN}, {"every", t.Every}, {"times", t.Times},
		{"organization_id", t.OrganizationID}, {"workspace_id", t.WorkspaceID},
	} {
		if n.value < 0 {
			add(n.name, "must not be negative")
		}
	}
	if !(t.Probability >= 0 && t.Probability <= 1) {
		add("probability", "must be from 0 to 1")
	}
}

// checkOperation refuses a pattern that no operation can match.
func (t *Trigger) checkOperation(ids []string, add func(field, format string, args ...any)) {
	if t.Operation == "" {
		return
	}
	// An id has no space, a method and a path have one between them.
	method, pattern, byPath := strings.Cut(t.Operation, " ")
	if byPath {
		if method != "*" && !slices.Contains([]string{"GET", "POST", "PATCH", "PUT", "DELETE"}, method) {
			add("operation", "the method must be GET, POST, PATCH, PUT, DELETE or *")
		}
		if _, err := path.Match(pattern, ""); err != nil || !strings.HasPrefix(pattern, "/") {
			add("operation", "the path must be a pattern such as /syncs/*, without %s", api.BasePath)
		}
		return
	}
	for _, id := range ids {
		ok, err := path.Match(t.Operation, id)
		if err != nil {
			add("operation", "is not a pattern")
			return
		}
		if ok {
			return
		}
	}
	add("operation", "no operation is called %q%s", foreign.Clip(t.Operation, 60), suggest.Phrase(t.Operation, ids))
}
