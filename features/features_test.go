package features_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/features"
)

// check is what this test needs of one scenario.
type check struct {
	id    string
	file  string
	tags  []string
	needs []string
	text  string
	steps int
}

var (
	idTag      = regexp.MustCompile(`^[A-Z]+-\d{3}$`)
	sectionTag = regexp.MustCompile(`^spec-\d+(\.\d+)*$`)
	// knownTag lists every other tag, so that a misspelt one cannot slip by.
	knownTag = regexp.MustCompile(`^(must|should|info|spec|jsonrpc|published|policy|write|write-optional|` +
		`readback-required|readback-decides|hook-(restart|alter_schema|break_downstream|rotate_token)|` +
		`load|probe|clock|differs-[a-z-]+|records-\d+|alone|each-object|first-object|last|evidence-[a-z]+|acquit|needs-[A-Z]+-\d{3})$`)
)

// load parses all feature files with the inherited tags in every check.
func load(t *testing.T) (checks []check, names []string) {
	t.Helper()
	files, err := fs.Glob(features.FS, "*/*.feature")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := fs.ReadFile(features.FS, file)
		require.NoError(t, err)
		doc, err := gherkin.ParseGherkinDocument(strings.NewReader(string(text)), (&messages.Incrementing{}).NewId)
		require.NoError(t, err, file)
		require.NotNil(t, doc.Feature, file)
		names = append(names, doc.Feature.Name)
		for _, child := range doc.Feature.Children {
			require.NotNil(t, child.Scenario, "%s holds something that is no scenario", file)
			checks = append(checks, newCheck(t, file, doc.Feature.Tags, child.Scenario))
		}
	}
	return checks, names
}

func newCheck(t *testing.T, file string, inherited []*messages.Tag, s *messages.Scenario) check {
	t.Helper()
	c := check{file: file, text: s.Description, steps: len(s.Steps)}
	for _, tag := range slices.Concat(inherited, s.Tags) {
		name := strings.TrimPrefix(tag.Name, "@")
		if idTag.MatchString(name) {
			require.Empty(t, c.id, "two ids at %q", s.Name)
			c.id = name
			continue
		}
		require.True(t, knownTag.MatchString(name) || sectionTag.MatchString(name), "unknown tag @%s at %q", name, s.Name)
		c.tags = append(c.tags, name)
		if need, ok := strings.CutPrefix(name, "needs-"); ok {
			c.needs = append(c.needs, need)
		}
	}
	require.NotEmpty(t, c.id, "no id at %q in %s", s.Name, file)
	return c
}

func (c check) has(tag string) bool { return slices.Contains(c.tags, tag) }

func (c check) count(match func(string) bool) int {
	n := 0
	for _, tag := range c.tags {
		if match(tag) {
			n++
		}
	}
	return n
}

func TestIDs(t *testing.T) {
	checks, _ := load(t)
	var got []string
	for _, c := range checks {
		got = append(got, c.id)
	}
	want := strings.Fields(features.IDs)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(want))), len(want), "an id occurs twice in ids.txt")
	require.ElementsMatch(t, want, got, "ids.txt and the feature files name different checks")
}

func TestFeatureNamesAreUnique(t *testing.T) {
	_, names := load(t)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names))
}

func TestTags(t *testing.T) {
	checks, _ := load(t)
	level := func(s string) bool { return s == "must" || s == "should" || s == "info" }
	authority := func(s string) bool { return s == "spec" || s == "jsonrpc" || s == "published" || s == "policy" }
	for _, c := range checks {
		require.Equal(t, 1, c.count(level), "%s has exactly one level", c.id)
		require.GreaterOrEqual(t, c.count(authority), 1, "%s names an authority", c.id)
		if c.count(authority) > 1 || !c.has("policy") {
			require.Positive(t, c.count(sectionTag.MatchString), "%s names a section", c.id)
		}
		if c.has("write") {
			require.Equal(t, 1, c.count(func(s string) bool { return strings.HasPrefix(s, "records-") }), "%s bounds its records", c.id)
		}
		if c.has("readback-required") || c.has("readback-decides") || c.has("each-object") || c.has("first-object") {
			require.True(t, c.has("write"), "%s writes", c.id)
		}
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(c.tags))), len(c.tags), "%s has a tag twice", c.id)
	}
}

// Reports and the explanation of a check split the description on these words.
func TestDescriptions(t *testing.T) {
	checks, _ := load(t)
	for _, c := range checks {
		reason, rest, found := strings.Cut(c.text, "Cause: ")
		require.True(t, found, "%s names a cause", c.id)
		require.NotEmpty(t, strings.TrimSpace(reason), "%s gives a reason", c.id)
		for _, word := range []string{"Fix: ", "Good: ", "Bad: "} {
			before, after, found := strings.Cut(rest, "\n")
			require.True(t, found && strings.TrimSpace(before) != "", "%s: a line before %q", c.id, word)
			after = strings.TrimSpace(after)
			require.True(t, strings.HasPrefix(after, word), "%s goes on with %q", c.id, word)
			rest = after[len(word):]
		}
		require.NotEmpty(t, rest, "%s shows a bad exchange", c.id)
		require.NotContains(t, rest, "\n", "%s ends with the bad exchange", c.id)
		require.NotContains(t, c.text, "~", "%s", c.id)
		require.GreaterOrEqual(t, c.steps, 2, "%s has steps", c.id)
	}
}

// A check never waits, by any way round, for itself, nor a MUST for less.
func TestNeeds(t *testing.T) {
	checks, _ := load(t)
	byID := map[string]check{}
	for _, c := range checks {
		byID[c.id] = c
	}
	for _, c := range checks {
		for _, need := range c.needs {
			other, ok := byID[need]
			require.True(t, ok, "%s needs %s, which does not exist", c.id, need)
			// A check runs although one that it needs has not: its needs only define which failures
			// explain its own. So another permission keeps nothing back.
			if c.has("must") {
				require.True(t, other.has("must"), "%s is a MUST and needs %s, which is none", c.id, need)
			}
			require.Equal(t, 0, other.count(func(s string) bool { return strings.HasPrefix(s, "hook-") || s == "load" }),
				"%s needs %s, which needs a hook or load", c.id, need)
		}
	}
	const onWay, done = 1, 2
	state := map[string]int{}
	var visit func(id string)
	visit = func(id string) {
		require.NotEqual(t, onWay, state[id], "%s needs itself", id)
		if state[id] == done {
			return
		}
		state[id] = onWay
		for _, need := range byID[id].needs {
			visit(need)
		}
		state[id] = done
	}
	for id := range byID {
		visit(id)
	}
}
