package conformance

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/features"
)

// Catalogue is the list of all checks in the order of the feature files.
type Catalogue struct {
	Checks []*Check
	byID   map[string]*Check
}

// embedded are the catalogues of the suites, each read once: parsing takes tens of milliseconds.
var embedded = map[string]func() (*Catalogue, error){
	SuiteDestination: sync.OnceValues(func() (*Catalogue, error) { return ReadCatalogue(features.FS, SuiteDestination, false) }),
	SuiteService:     sync.OnceValues(func() (*Catalogue, error) { return ReadCatalogue(features.FS, SuiteService, false) }),
}

// LoadCatalogue reads the catalogue of SuiteDestination or SuiteService; its caller may change it.
func LoadCatalogue(suite string) (*Catalogue, error) {
	read, known := embedded[suite]
	if !known {
		return nil, fmt.Errorf("%q is no suite: use %s or %s", suite, SuiteDestination, SuiteService)
	}
	c, err := read()
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

// ReadCatalogue reads every .feature file below dir. Checks of the author's own need no tags.
func ReadCatalogue(fsys fs.FS, dir string, own bool) (*Catalogue, error) {
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
	rank := func(c *Check) int {
		if i := slices.Index(areaOrder, strings.TrimSuffix(path.Base(c.File), ".feature")); i >= 0 {
			return i
		}
		return len(areaOrder)
	}
	slices.SortStableFunc(cat.Checks, func(a, b *Check) int { return rank(a) - rank(b) })
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

func (c *Catalogue) addFile(name string, data []byte, own bool) error {
	doc, err := gherkin.ParseGherkinDocument(bytes.NewReader(data), (&messages.Incrementing{}).NewId)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if doc.Feature == nil {
		return nil
	}
	lines := strings.SplitAfter(string(data), "\n")
	background := ""
	for i, child := range doc.Feature.Children {
		end := len(lines)
		if later := doc.Feature.Children[i+1:]; len(later) > 0 && later[0].Scenario != nil {
			end = firstLine(later[0].Scenario) - 1
		}
		switch {
		case child.Background != nil:
			background = strings.Join(lines[child.Background.Location.Line-1:end], "")
		case child.Scenario != nil:
			check, err := newCheck(name, doc.Feature, child.Scenario, own)
			if err != nil {
				return err
			}
			check.Text = strings.TrimRight(strings.Join(lines[firstLine(child.Scenario)-1:end], ""), "\n ")
			check.cut(child.Scenario, background, lines[:end])
			if c.byID[check.ID] != nil {
				return fmt.Errorf("%s:%d: id %s is used twice", name, check.Line, check.ID)
			}
			c.byID[check.ID] = check
			c.Checks = append(c.Checks, check)
		case own:
			return fmt.Errorf("%s:%d: rules are not supported: move the scenarios up", name, child.Rule.Location.Line)
		}
	}
	return nil
}

// firstLine is the first line (from 1) of a scenario, tags included.
func firstLine(s *messages.Scenario) int {
	line := s.Location.Line
	for _, tag := range s.Tags {
		line = min(line, tag.Location.Line)
	}
	return int(line)
}
