package loads

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// The elements of JUnit's XML.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Time      string      `xml:"time,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Failure   *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
)

// writeJUnit writes a test for each limit, and one each for the records, the verification
// and the search: what makes the exit status of a load.
func writeJUnit(r *loadgen.Result, to io.Writer) error {
	s := junitSuite{Name: "destkit load " + foreign.Line(r.Target.Address), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"), Time: fmt.Sprintf("%.3f", r.Seconds)}
	add := func(name, failure string) {
		c := junitCase{Name: name, Classname: "load", Time: "0"}
		if failure != "" {
			c.Failure = &junitFailure{foreign.Line(failure), "limit"}
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
		s.Tests++
	}
	ended := ""
	if r.Ended == "too many errors" || r.Ended == "interrupted" {
		ended = fmt.Sprintf("ended after %s: %s", time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond), r.Ended)
	}
	add("the load takes place", cmp.Or(r.Useless(), ended))
	for _, t := range r.Thresholds {
		failure := ""
		if t.Failed {
			failure = t.String()
		}
		add(t.Text, failure)
	}
	if v := r.Verification; v != nil {
		failure := ""
		if v.Findings() > 0 || v.Chosen > 0 && v.Verified == 0 {
			failure = v.Text()
		}
		add("acknowledged records are stored", failure)
	}
	if f := r.Search; f != nil {
		failure := ""
		if !f.Confirmed {
			failure = "no rate was confirmed"
		}
		add("a rate holds "+f.Goal, failure)
	}
	text, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{s}}, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	if _, err := to.Write(append(append([]byte(xml.Header), text...), '\n')); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}
