package conformance

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/features"
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
	Reason    string      `json:"reason"` // why it matters to a sync
	Cause     string      `json:"cause"`
	Fix       string      `json:"fix"`
	Good      string      `json:"good"` // a good and a bad exchange
	Bad       string      `json:"bad"`
	Needs     []string    `json:"needs"`
	// Evidence is what a PASS must rest on: at least one of each kind.
	Evidence []Evidence `json:"evidence,omitempty"`

	Write            bool   `json:"write"`             // writes records
	WriteOptional    bool   `json:"write_optional"`    // sees more with writes
	ReadbackRequired bool   `json:"readback_required"` // undecidable without read-back
	ReadbackDecides  bool   `json:"readback_decides"`  // stronger with read-back
	Hook             string `json:"hook,omitempty"`    // restart, alter_schema, …
	Load             bool   `json:"load"`
	Last             bool   `json:"last"`  // when all others have their results
	Probe            bool   `json:"probe"` // an extra network probe
	Alone            bool   `json:"alone"` // never beside other checks
	Clock            bool   `json:"clock"` // moves the clock of a service, or waits for real
	EachObject       bool   `json:"each_object"`
	Acquit           bool   `json:"acquit"`  // a second run may acquit
	Records          int    `json:"records"` // at most, for each object
	// Differs are the named differences of the live dialect that the check meets.
	Differs []string `json:"differs,omitempty"`

	File  string   `json:"file"`
	Line  int      `json:"line"`
	Steps []string `json:"steps"`
	Text  string   `json:"text"` // the scenario in Gherkin

	Number      int  `json:"-"` // its place in the catalogue, from 1
	firstObject bool // one named object is enough
	own         bool
	source      string // a feature of this scenario only
	tables      []table
}

// table is what stands below a step.
type table struct {
	step string
	rows [][]string
}

// Catalogue is the list of all checks in the order of the feature files.
type Catalogue struct {
	Checks []*Check
	byID   map[string]*Check
}

// LoadCatalogue reads the embedded catalogue of checks of a suite: SuiteDestination or
// SuiteService.
func LoadCatalogue(suite string) (*Catalogue, error) {
	switch suite {
	case SuiteDestination:
		return copied(embeddedDestination())
	case SuiteService:
		return copied(embeddedService())
	}
	return nil, fmt.Errorf("%q is no suite: use %s or %s", suite, SuiteDestination, SuiteService)
}

// Parsing takes tens of milliseconds, several times as long as judging one check.
var (
	embeddedDestination = sync.OnceValues(func() (*Catalogue, error) { return readCatalogue(features.FS, "destination", false) })
	embeddedService     = sync.OnceValues(func() (*Catalogue, error) { return readCatalogue(features.FS, "service", false) })
)

// copied is a catalogue that its caller may change.
func copied(c *Catalogue, err error) (*Catalogue, error) {
	if err != nil {
		return nil, err
	}
	out := &Catalogue{byID: make(map[string]*Check, len(c.Checks))}
	for _, check := range c.Checks {
		own := *check
		out.Checks, out.byID[own.ID] = append(out.Checks, &own), &own
	}
	return out, nil
}

// Check finds a check by its id.
func (c *Catalogue) Check(id string) (*Check, bool) {
	check, ok := c.byID[id]
	return check, ok
}

// Match returns the checks whose id matches a glob such as "RES-*".
func (c *Catalogue) Match(glob string) ([]*Check, error) {
	if check, ok := c.byID[glob]; ok {
		return []*Check{check}, nil
	}
	var out []*Check
	for _, check := range c.Checks {
		ok, err := path.Match(glob, check.ID)
		if err != nil {
			return nil, fmt.Errorf("match selector %q: %w", glob, err)
		}
		if ok {
			out = append(out, check)
		}
	}
	return out, nil
}

// readCatalogue reads every .feature file below dir. The author's own files
// need no tags: their checks get an id from their place.
func readCatalogue(fsys fs.FS, dir string, own bool) (*Catalogue, error) {
	cat := &Catalogue{byID: map[string]*Check{}}
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".feature" {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return cat.addFile(name, data, own)
	})
	if err != nil {
		return nil, fmt.Errorf("read features: %w", err)
	}
	slices.SortStableFunc(cat.Checks, func(a, b *Check) int { return areaRank(a.File) - areaRank(b.File) })
	for i, c := range cat.Checks {
		c.Number = i + 1
	}
	return cat, nil
}

// areaOrder is the order in which areas are reported.
var areaOrder = []string{
	"rpc", "http", "tls", "auth", "connection", "planning", "operations", "speed", "results",
	"semantics", "durability", "statelessness", "parallel", "errors", "time", "data", "version",
}

func areaRank(file string) int {
	base := strings.TrimSuffix(path.Base(file), ".feature")
	if i := slices.Index(areaOrder, base); i >= 0 {
		return i
	}
	return len(areaOrder)
}

func (c *Catalogue) addFile(name string, data []byte, own bool) error {
	doc, err := gherkin.ParseGherkinDocument(bytes.NewReader(data), (&messages.Incrementing{}).NewId)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if doc.Feature == nil {
		return nil
	}
	lines := strings.SplitAfter(string(data), "\n")
	starts := scenarioStarts(doc.Feature)
	var background string
	for _, child := range doc.Feature.Children {
		switch {
		case child.Background != nil && len(starts) > 0:
			background = strings.Join(lines[child.Background.Location.Line-1:starts[0]-1], "")
		case own && child.Rule != nil:
			return fmt.Errorf("%s:%d: rules are not supported: move the scenarios up", name, child.Rule.Location.Line)
		}
		if child.Scenario == nil {
			continue
		}
		end := len(lines)
		if len(starts) > 1 {
			end = starts[1] - 1
		}
		check, err := newCheck(name, doc.Feature, child.Scenario, own)
		if err != nil {
			return err
		}
		check.Text = strings.TrimRight(strings.Join(lines[starts[0]-1:end], ""), "\n ")
		check.cut(child.Scenario, background, lines[:end])
		starts = starts[1:]
		if c.byID[check.ID] != nil {
			return fmt.Errorf("%s:%d: id %s is used twice", name, check.Line, check.ID)
		}
		c.byID[check.ID] = check
		c.Checks = append(c.Checks, check)
	}
	return nil
}

// scenarioStarts returns the first line (from 1) of each scenario, tags included.
func scenarioStarts(f *messages.Feature) []int {
	var starts []int
	for _, child := range f.Children {
		if child.Scenario == nil {
			continue
		}
		line := child.Scenario.Location.Line
		for _, tag := range child.Scenario.Tags {
			line = min(line, tag.Location.Line)
		}
		starts = append(starts, int(line))
	}
	return starts
}

// cut makes the feature of this scenario only: its steps and those of the background.
// Tags and descriptions take longer to read than the steps to run.
func (c *Check) cut(s *messages.Scenario, background string, lines []string) {
	if len(s.Steps) > 0 {
		lines = lines[s.Steps[0].Location.Line-1:]
		c.source = "Feature: " + c.Area + "\n" + background + s.Keyword + ": " + c.ID + "\n" + strings.Join(lines, "")
	}
}

func newCheck(file string, f *messages.Feature, s *messages.Scenario, own bool) (*Check, error) {
	c := &Check{
		Title: s.Name, Area: f.Name, File: file, Line: int(s.Location.Line), own: own,
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
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		label, rest, found := strings.Cut(line, ": ")
		switch {
		case found && label == "Cause":
			c.Cause = rest
		case found && label == "Fix":
			c.Fix = rest
		case found && label == "Good":
			c.Good = rest
		case found && label == "Bad":
			c.Bad = rest
		case line != "":
			reason = append(reason, line)
		}
	}
	c.Reason = strings.Join(reason, " ")
}

func (c *Check) tag(name string) error {
	switch name {
	case "must":
		c.Level = Must
	case "should":
		c.Level = Should
	case "info":
		c.Level = Info
	case "spec", "jsonrpc", "published", "policy":
		c.Authority = append(c.Authority, Authority(name))
	case "write":
		c.Write = true
	case "write-optional":
		c.WriteOptional = true
	case "readback-required":
		c.ReadbackRequired = true
	case "readback-decides":
		c.ReadbackDecides = true
	case "last":
		c.Last, c.Alone = true, true
	case "load":
		c.Load = true
	case "probe":
		c.Probe = true
	case "alone":
		c.Alone = true
	case "clock": // moving time disturbs everything else that is under way
		c.Clock, c.Alone = true, true
	case "each-object":
		c.EachObject = true
	case "first-object":
		c.EachObject, c.firstObject = true, true
	case "acquit":
		c.Acquit = true
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
	case isID(name):
		if c.ID != "" {
			return fmt.Errorf("two ids, %s and %s", c.ID, name)
		}
		c.ID = name
	case !c.own:
		return fmt.Errorf("unknown tag @%s", name)
	}
	return nil
}

// isID tells an id such as RES-002 from other tags.
func isID(s string) bool {
	area, number, ok := strings.Cut(s, "-")
	if !ok || len(number) < 3 || strings.ToUpper(area) != area || area == "" {
		return false
	}
	_, err := strconv.Atoi(number)
	return err == nil
}

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

// Read puts the checks of every feature file below dir in place of those of c.
func (c *Catalogue) Read(fsys fs.FS, dir string) error {
	read, err := readCatalogue(fsys, dir, false)
	if err != nil {
		return err
	}
	*c = *read
	return nil
}
