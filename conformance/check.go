package conformance

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/internal/lists"
)

// Check is one scenario of the catalogue: one rule, one verdict.
type Check struct {
	ID        string      `json:"id"`
	Title     string      `json:"title"`
	Level     Level       `json:"level"`
	Authority []Authority `json:"authority"`
	Sections  []string    `json:"sections"`
	Area      string      `json:"area"`
	Explanation
	Needs []string `json:"needs"`
	// Evidence is what a PASS must rest on: at least one of each kind.
	Evidence []Evidence `json:"evidence,omitempty"`
	Conditions
	Place
	Number int    `json:"-"` // its place in the catalogue, from 1
	Own    bool   `json:"-"` // one of the author's
	Source string `json:"-"` // a feature of this scenario only
	tables []table
}

// Explanation holds why a rule matters to a sync, why it is broken, and what to do, with examples.
type Explanation struct {
	Reason string `json:"reason"`
	Cause  string `json:"cause"`
	Fix    string `json:"fix"`
	Good   string `json:"good"`
	Bad    string `json:"bad"`
}

// Conditions are what a check needs of a run, and what it does to it.
type Conditions struct {
	Write            bool   `json:"write"`             // writes records
	WriteOptional    bool   `json:"write_optional"`    // sees more with writes
	ReadbackRequired bool   `json:"readback_required"` // undecidable without read-back
	ReadbackDecides  bool   `json:"readback_decides"`  // stronger with read-back
	Hook             string `json:"hook,omitempty"`    // restart, alter_schema, …
	Load             bool   `json:"load"`
	Last             bool   `json:"last"`  // when all others have their results
	Probe            bool   `json:"probe"` // an extra network probe
	Alone            bool   `json:"alone"` // never in parallel with other checks
	Clock            bool   `json:"clock"` // moves the clock of a service, or waits for real
	EachObject       bool   `json:"each_object"`
	Acquit           bool   `json:"acquit"`  // a second run may acquit
	Records          int    `json:"records"` // at most, for each object
	// Differs are the named differences of the live dialect that the check meets.
	Differs     []string `json:"differs,omitempty"`
	FirstObject bool     `json:"-"` // one named object is enough
}

// Place is where a check is defined, with its steps.
type Place struct {
	File  string   `json:"file"`
	Line  int      `json:"line"`
	Steps []string `json:"steps"`
	Text  string   `json:"text"` // the scenario in Gherkin
}

// table is the table of a step.
type table struct {
	step string
	rows [][]string
}

// cut makes the feature of this scenario only, without tags and descriptions, which take long to read.
func (c *Check) cut(s *messages.Scenario, background string, lines []string) {
	if len(s.Steps) > 0 {
		lines = lines[s.Steps[0].Location.Line-1:]
		c.Source = "Feature: " + c.Area + "\n" + background + s.Keyword + ": " + c.ID + "\n" + strings.Join(lines, "")
	}
}

func newCheck(file string, f *messages.Feature, s *messages.Scenario, own bool) (*Check, error) {
	c := &Check{
		Title: s.Name, Area: f.Name, Place: Place{File: file, Line: int(s.Location.Line)}, Own: own,
		Level: Info, Needs: []string{}, Sections: []string{}, Authority: []Authority{},
	}
	for _, step := range s.Steps {
		c.Steps = append(c.Steps, strings.TrimSpace(step.Keyword)+" "+step.Text)
		if step.DataTable != nil {
			c.tables = append(c.tables, table{step.Text, lists.Of(step.DataTable.Rows, func(row *messages.TableRow) []string {
				return lists.Of(row.Cells, func(cell *messages.TableCell) string { return cell.Value })
			})})
		}
	}
	c.describe(s.Description)
	for _, tag := range slices.Concat(f.Tags, s.Tags) {
		if err := c.tag(strings.TrimPrefix(tag.Name, "@")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, tag.Location.Line, err)
		}
	}
	if c.ID == "" {
		if !own {
			return nil, fmt.Errorf("%s:%d: scenario %q has no id", file, c.Line, s.Name)
		}
		c.ID = fmt.Sprintf("%s:%d", path.Base(file), c.Line)
	}
	c.Needs = slices.DeleteFunc(c.Needs, func(id string) bool { return id == c.ID })
	return c, nil
}

// describe splits the description into its labelled lines.
func (c *Check) describe(text string) {
	var reason []string
	labelled := map[string]*string{"Cause": &c.Cause, "Fix": &c.Fix, "Good": &c.Good, "Bad": &c.Bad}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		label, rest, found := strings.Cut(line, ": ")
		if into := labelled[label]; found && into != nil {
			*into = rest
		} else if line != "" {
			reason = append(reason, line)
		}
	}
	c.Reason = strings.Join(reason, " ")
}

func (c *Check) tag(name string) error {
	flags := map[string]*bool{
		"write": &c.Write, "write-optional": &c.WriteOptional, "readback-required": &c.ReadbackRequired, "readback-decides": &c.ReadbackDecides,
		"last": &c.Last, "load": &c.Load, "probe": &c.Probe, "alone": &c.Alone, "clock": &c.Clock,
		"each-object": &c.EachObject, "first-object": &c.FirstObject, "acquit": &c.Acquit,
	}
	if flag := flags[name]; flag != nil {
		*flag = true
		c.Alone = c.Alone || c.Last || c.Clock // moving time disturbs everything else that is under way
		c.EachObject = c.EachObject || c.FirstObject
		return nil
	}
	switch name {
	case "must", "should", "info":
		c.Level = Level(strings.ToUpper(name))
	case "spec", "jsonrpc", "published", "policy":
		c.Authority = append(c.Authority, Authority(name))
	default:
		return c.prefixedTag(name)
	}
	return nil
}

func (c *Check) prefixedTag(name string) error {
	prefix, rest, _ := strings.Cut(name, "-")
	switch {
	case prefix == "spec" && rest != "":
		c.Sections = append(c.Sections, rest)
	case prefix == "needs" && rest != "":
		c.Needs = append(c.Needs, rest)
	case prefix == "differs" && rest != "":
		c.Differs = append(c.Differs, rest)
	case prefix == "evidence" && slices.Contains(evidenceKinds, Evidence(rest)):
		c.Evidence = append(c.Evidence, Evidence(rest))
	case prefix == "hook" && rest != "":
		c.Hook = rest
	case prefix == "records" && rest != "":
		n, err := strconv.Atoi(rest)
		if err != nil {
			return fmt.Errorf("tag @%s: %w", name, err)
		}
		c.Records = n
	case checkID.MatchString(name):
		if c.ID != "" {
			return fmt.Errorf("two ids, %s and %s", c.ID, name)
		}
		c.ID = name
	case !c.Own:
		return fmt.Errorf("unknown tag @%s", name)
	}
	return nil
}

// checkID distinguishes an id such as RES-002 from other tags.
var checkID = regexp.MustCompile(`^[^-\p{Ll}]+-[0-9]{3,}$`)

// Rows are those of the tables below the steps that have the words.
func (c *Check) Rows(words string) [][]string {
	var out [][]string
	for _, t := range c.tables {
		if strings.Contains(t.step, words) {
			out = append(out, t.rows...)
		}
	}
	return out
}

// Claims are the Then lines of a check without their keywords.
func (c *Check) Claims() []string {
	var out []string
	claims := false
	for _, step := range c.Steps {
		keyword, text, _ := strings.Cut(step, " ")
		claims = keyword == "Then" || keyword == "And" && claims
		if claims && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// Evidence is a kind of observation that a PASS can rest on. Tags such as @evidence-stored name
// those of a check, and a run that has none of one of them is INCONCLUSIVE.
type Evidence string

// The kinds of evidence. Records are counted once for each batch that shows them.
const (
	SeenResponses  Evidence = "responses"  // HTTP responses
	SeenEnvelopes  Evidence = "envelopes"  // responses with a result or an error
	SeenAnswers    Evidence = "answers"    // responses with a result
	SeenAttempts   Evidence = "attempts"   // calls, with or without a response
	SeenErrors     Evidence = "errors"     // JSON-RPC error objects
	SeenHandshakes Evidence = "handshakes" // TLS handshakes
	SeenResults    Evidence = "results"    // record results
	SeenAccepted   Evidence = "accepted"   // records of the last batch whose results report success
	SeenRefused    Evidence = "refused"    // records whose results report failure
	SeenStored     Evidence = "stored"     // accepted records that are in the destination
	SeenChanged    Evidence = "changed"    // accepted records whose values differ from those before
	SeenKept       Evidence = "kept"       // records that a batch could have changed, and did not
	SeenDeleted    Evidence = "deleted"    // records that were there and are gone
	SeenAbsent     Evidence = "absent"     // keys that are not in the destination
)

// EvidenceKinds are all kinds, in the order of a report.
func EvidenceKinds() []Evidence { return slices.Clone(evidenceKinds) }

var evidenceKinds = []Evidence{
	SeenHandshakes, SeenAttempts, SeenResponses, SeenEnvelopes, SeenAnswers, SeenErrors, SeenResults, SeenAccepted, SeenRefused,
	SeenStored, SeenChanged, SeenKept, SeenDeleted, SeenAbsent,
}
