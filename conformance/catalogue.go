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

// Read puts the checks of every feature file below dir in place of those of c.
func (c *Catalogue) Read(fsys fs.FS, dir string) error {
	read, err := readCatalogue(fsys, dir, false)
	if err != nil {
		return err
	}
	*c = *read
	return nil
}
