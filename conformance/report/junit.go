package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
)

// The elements of JUnit's XML in the order that its schema requires.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string      `xml:"name,attr"`
	Timestamp  string      `xml:"timestamp,attr"`
	Hostname   string      `xml:"hostname,attr"`
	Tests      int         `xml:"tests,attr"`
	Failures   int         `xml:"failures,attr"`
	Errors     int         `xml:"errors,attr"`
	Skipped    int         `xml:"skipped,attr"`
	Time       string      `xml:"time,attr"`
	Package    string      `xml:"package,attr"`
	ID         int         `xml:"id,attr"`
	Properties []setting   `xml:"properties>property"`
	Cases      []junitCase `xml:"testcase"`
	Out        string      `xml:"system-out"`
	Err        string      `xml:"system-err"`

	milliseconds float64
}

type junitCase struct {
	Name      string       `xml:"name,attr"`
	Classname string       `xml:"classname,attr"`
	Time      string       `xml:"time,attr"`
	Skipped   *junitDetail `xml:"skipped"`
	Error     *junitDetail `xml:"error"`
	Failure   *junitDetail `xml:"failure"`
}

type junitDetail struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes one suite per area; where the exit status is not 0 the file holds a failure or an error.
func writeJUnit(w io.Writer, r *c.Report, _ Options) error {
	var out junitSuites
	add := func(s junitSuite) {
		s.ID = len(out.Suites)
		s.Time = seconds(s.milliseconds)
		out.Suites = append(out.Suites, s)
	}
	bad := 0
	for _, group := range []struct {
		name   string
		checks []c.CheckResult
		scored bool
	}{{orWord(r.Suite, "destination"), r.Checks, true}, {"own", r.Own, false}} {
		for _, a := range areas(group.checks) {
			s := newSuite(r, group.name, a.Name)
			for _, check := range a.Checks {
				s.add(check, group.scored)
			}
			bad += s.Failures + s.Errors
			add(s)
		}
	}
	if s := runSuite(r, bad); len(s.Cases) > 0 {
		add(s)
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// newSuite makes a suite with all settings, since CI services show suites one by one.
func newSuite(r *c.Report, group, name string) junitSuite {
	s := junitSuite{
		Name:      orWord(name, group),
		Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"), // the schema forbids a zone
		Hostname:  hostname(r.Target),
		Package:   "destkit." + group,
	}
	s.Properties = []setting{{"tool", line(r.Tool.Name + " " + r.Tool.Version)}, {"target", line(r.Target)}}
	for i, replica := range r.Replicas { // a name each: many readers make a map of them
		s.Properties = append(s.Properties, setting{fmt.Sprintf("replica %d", i+1), line(replica)})
	}
	s.Properties = append(s.Properties, setting{"verdict", line(string(r.Verdict))}, setting{"tier", line(string(r.Tier))},
		setting{"summary", line(r.Summary)})
	s.Properties = append(s.Properties, settings(r)...)
	return s
}

// add files one result. The schema has no output of a case: that of a warning is in its suite.
func (s *junitSuite) add(r c.CheckResult, scored bool) {
	tc := junitCase{
		Name:      line(r.ID + " " + r.Title),
		Classname: s.Package + "." + s.Name,
		Time:      seconds(r.DurationMS),
	}
	detail := &junitDetail{Message: line(headline(r)), Text: "\n" + details(r)}
	switch {
	case !scored && r.Status != c.Pass:
		// The author's own checks are never scored.
		detail.Message = string(r.Status) + ", not scored: " + detail.Message
		tc.Skipped = detail
	case r.Status == c.HarnessError && r.Gating:
		detail.Type = string(r.Status)
		tc.Error = detail
	case stopsGate(r):
		detail.Type = string(r.Status)
		tc.Failure = detail
	case isUndecided(r), r.Status == c.NotApplicable:
		tc.Skipped = &junitDetail{Message: string(r.Status) + ": " + line(headline(r))}
	case r.Status == c.Waived:
		detail.Message = "WAIVED: " + waiver(r.Waiver)
		tc.Skipped = detail
	case isWarning(r):
		s.Out += fmt.Sprintf("\n%s %s %s\n%s", r.Status, line(r.ID), line(r.Title), details(r))
	}
	s.count(tc, r.DurationMS)
}

func (s *junitSuite) count(tc junitCase, ms float64) {
	s.Cases = append(s.Cases, tc)
	s.Tests++
	s.milliseconds += max(ms, 0)
	switch {
	case tc.Failure != nil:
		s.Failures++
	case tc.Error != nil:
		s.Errors++
	case tc.Skipped != nil:
		s.Skipped++
	}
}

// runSuite holds the problems of the run, and an exit status that no result explains.
func runSuite(r *c.Report, bad int) junitSuite {
	s := newSuite(r, "run", "run")
	for _, p := range problems(r) {
		tc := junitCase{Name: orWord(p.Kind, "problem"), Classname: "destkit.run", Time: seconds(0)}
		detail := &junitDetail{Message: line(p.Message), Text: text(p.Fix)}
		if p.ExitStatus != 0 {
			detail.Type = line(p.Kind)
			tc.Error = detail
		} else {
			tc.Skipped = detail
		}
		s.count(tc, 0)
	}
	if r.ExitStatus != 0 && bad+s.Errors == 0 {
		s.count(junitCase{Name: fmt.Sprintf("exit status %d", r.ExitStatus), Classname: "destkit.run", Time: seconds(0),
			Error: &junitDetail{Message: line(r.Summary), Type: "exit"}}, 0)
	}
	return s
}

// headline is the one sentence of a result, with the replica that alone shows all findings.
func headline(r c.CheckResult) string {
	if len(r.Findings) == 0 {
		return r.Reason
	}
	first := r.Findings[0]
	said := cmp.Or(r.Reason, first.Actual)
	if first.Replica == "" || slices.ContainsFunc(r.Findings, func(f c.Finding) bool { return f.Replica != first.Replica }) {
		return said
	}
	return said + " (shown by " + first.Replica + ")"
}

// details writes the findings of a result as a block of plain text.
func details(r c.CheckResult) string {
	var b strings.Builder
	say := func(label, s string) {
		if s = text(limit(s, maxField)); s != "" {
			fmt.Fprintf(&b, "%s%s\n", label, s)
		}
	}
	say("", rank(r))
	say("", r.Reason)
	before := c.Finding{} // its parts are not repeated: the findings of one rule mostly have one cause
	for _, f := range r.Findings {
		say("", place(f))
		if f.Rule != before.Rule && !ruleIsSaid(r, f) {
			say("rule: ", f.Rule)
		}
		say("expected: ", f.Expected)
		say("actual: ", f.Actual)
		if f.Cause != before.Cause {
			say(strings.ToLower(f.CauseLabel())+": ", f.Cause)
		}
		if f.Fix != before.Fix {
			say("fix: ", f.Fix)
		}
		before = f
		for _, l := range command(f.Curl, 1<<20) {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// seconds writes a duration in the only unit and form that the schema takes.
func seconds(ms float64) string { return fmt.Sprintf("%.3f", max(ms, 0)/1000) }

// hostname is the host of the target, as far as it may be shown.
func hostname(target string) string {
	if u, err := url.Parse(line(target)); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "localhost"
}
