package zoo_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
)

// judge runs the judge as an author does: with writes, and with or without
// read-back.
func judge(t *testing.T, language, name string, s Setting, readback bool) *conformance.Report {
	t.Helper()
	return judgeBehind(t, language, name, s, readback, func(url string) string { return url })
}

// judgeBehind is judge with something in front of the endpoint: behind is its address.
func judgeBehind(t *testing.T, language, name string, s Setting, readback bool, behind func(url string) string) *conformance.Report {
	t.Helper()
	url := ""
	if s.Own {
		url = ownURL(t, language, s.Restarts)
	} else {
		url = baseURL(t, language)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	url += strings.ToLower(fmt.Sprintf("/m/%s/%s%t", name, test, readback)) // each judgement has its own store
	opts := conformance.Options{
		Write: true, Objects: s.Objects, Seed: max(s.Seed, 7), SkipConvention: s.SkipConvention,
		KeyFrom: s.KeyFrom, KeyTo: s.KeyTo, KeyTemplate: s.KeyTemplate,
		// A mistake may keep a call from ever being answered.
		PlanningTimeout: 5 * time.Second, BatchTimeout: 10 * time.Second,
	}
	if !s.Large {
		opts.Skip = []string{"DAT-012"} // bodies of megabytes take a third of the time of the whole
	}
	if len(opts.Objects) == 0 {
		opts.Objects = Objects(language)[:1]
	}
	if readback {
		opts.Readback = conformance.HookSpec{URL: url + "/readback"}
	}
	if s.AlterSchema {
		opts.Hooks.AlterSchema = conformance.HookSpec{URL: url + "/alter_schema"}
	}
	for object, fields := range s.Fixtures {
		if opts.Fixtures == nil {
			opts.Fixtures = map[string]conformance.Fixture{}
		}
		opts.Fixtures[object] = conformance.Fixture{Fields: fields}
	}
	if language == Postgres {
		end := url + "/close"
		t.Cleanup(func() { closed(t, end) })
	}
	url += "/rpc"
	if s.Code != "" {
		url, opts.URLSecret = url+"?code="+s.Code, "query:code"
	}
	r, err := destination.Run(context.Background(), destination.Target{URL: behind(url), Token: token}, opts)
	require.NoError(t, err)
	return r
}

// closed gives the connections of an endpoint back.
func closed(t *testing.T, url string) {
	t.Helper()
	response, err := http.Post(url, "", nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}

// outcome is what one run found of a mistake.
type outcome struct {
	status  conformance.Status  // of the best check, "" when none saw it
	by      []string            // the checks that are meant and saw it
	first   conformance.Finding // the first one of them
	missed  string              // what a run with read-back reports badly
	seconds float64
}

func (o outcome) String() string {
	if o.status == "" {
		return "not found"
	}
	return fmt.Sprintf("%s %s", o.status, strings.Join(o.by, " "))
}

// found looks for the checks that must see a mistake.
func found(r *conformance.Report, m Mistake) outcome {
	o := outcome{seconds: r.DurationMS / 1000}
	for _, want := range []conformance.Status{conformance.Fail, conformance.Warn} {
		for _, c := range r.Checks {
			seen := c.Status == want || want == conformance.Fail && c.Status == conformance.Flaky
			if seen && matches(m.Finds, c.ID) {
				if len(o.by) == 0 && len(c.Findings) > 0 {
					o.first = c.Findings[0]
				}
				o.by = append(o.by, c.ID)
			}
		}
		if len(o.by) > 0 {
			o.status = want
			return o
		}
	}
	return o
}

// failed are the ids of the checks with one of these statuses.
func failed(r *conformance.Report, statuses ...conformance.Status) []string {
	var out []string
	for _, c := range r.Checks {
		if slices.Contains(statuses, c.Status) {
			out = append(out, c.ID)
		}
	}
	return out
}

// matches reports whether an id is one of these globs.
func matches(globs []string, id string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { ok, _ := path.Match(g, id); return ok })
}

// explain prints the findings of checks with one of these statuses, for a
// failing test.
func explain(r *conformance.Report, statuses ...conformance.Status) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Summary)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "problem %s: %s\n", p.Kind, p.Message)
	}
	for _, c := range r.Checks {
		if !slices.Contains(statuses, c.Status) {
			continue
		}
		fmt.Fprintf(&b, "%s %s (%s) %s\n", c.Status, c.ID, c.Title, c.Reason)
		for _, f := range c.Findings[:min(2, len(c.Findings))] {
			fmt.Fprintf(&b, "   %s/%s expected %s\n   actual %s\n", f.Object, f.Operation, f.Expected, f.Actual)
		}
	}
	return b.String()
}

// observed are the causes that a run states as observed.
func observed(r *conformance.Report) []string {
	var out []string
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if f.Observed {
				out = append(out, f.Cause)
			}
		}
	}
	return out
}
