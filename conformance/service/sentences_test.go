package service_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/features"
	"github.com/destkit/destkit/internal/yamldoc"
)

// sentence is one row of features/service/sentences.yaml.
type sentence struct {
	At       string   `yaml:"at"`
	Rule     string   `yaml:"rule"`
	Says     string   `yaml:"says"`
	By       []string `yaml:"by"`
	Excluded string   `yaml:"excluded"`
	Unbound  string   `yaml:"unbound"`
}

// sentences is the map: every sentence of the specification in its order.
type sentences struct {
	Sections []struct {
		Section   string     `yaml:"section"`
		Title     string     `yaml:"title"`
		Sentences []sentence `yaml:"sentences"`
	} `yaml:"sections"`
}

func loadSentences(t *testing.T) *sentences {
	t.Helper()
	var s sentences
	require.NoError(t, yamldoc.Decode("features/service/sentences.yaml", []byte(features.ServiceSentences), &s))
	require.NotEmpty(t, s.Sections)
	return &s
}

// mustBeJudged is what no exclusion may name: a number, a header or a status can
// be seen from outside.
var mustBeJudged = regexp.MustCompile(`\d|(?i:\bheader\b|\bstatus\b)`)

// TestSentences: every sentence that binds a service is judged, or has a reason why it cannot be.
func TestSentences(t *testing.T) {
	cat := catalogueOf(t, conformance.SuiteService)
	named, binding, excluded := map[string]bool{}, 0, 0
	for _, section := range loadSentences(t).Sections {
		for i, s := range section.Sentences {
			require.Equal(t, fmt.Sprintf("%s-%d", section.Section, i+1), s.At, "a sentence is missing")
			require.NotEmpty(t, s.Says, s.At)
			n := 0
			for _, said := range []bool{len(s.By) > 0, s.Excluded != "", s.Unbound != ""} {
				if said {
					n++
				}
			}
			require.Equal(t, 1, n, "%s has one of by, excluded and unbound: %s", s.At, s.Says)
			for _, id := range s.By {
				_, known := cat.Check(id)
				require.True(t, known, "%s names %s, which is no check", s.At, id)
				named[id] = true
			}
			if s.Unbound != "" {
				require.Contains(t, []string{"destination", "definition", "open"}, s.Unbound, s.At)
				continue
			}
			binding++
			if s.Excluded != "" {
				excluded++
				require.Greater(t, len(s.Excluded), 20, "%s needs a reason", s.At)
				require.False(t, mustBeJudged.MatchString(s.Says), "%s names a number, a header or a status and is excluded: %s", s.At, s.Says)
			}
		}
	}
	require.LessOrEqual(t, excluded*10, binding, "%d of %d sentences are excluded", excluded, binding)
	for _, c := range cat.Checks {
		require.True(t, named[c.ID] || !slices.Contains(c.Authority, conformance.AuthoritySpec), "no sentence asks for %s", c.ID)
	}
}

const sentencesTable = "../../docs/evidence/service-sentences.md"

// TestSentencesTable keeps the map as a page; -update writes it.
func TestSentencesTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The sentences of the specification and their checks\n\n" +
		"Every sentence and every table row of the specification, with the checks of\n" +
		"`destkit conform service` that judge it. Some sentences do not bind a service: they bind\n" +
		"a custom destination, define a term, or say that something is not shown. A sentence that\n" +
		"binds a service and cannot be judged from outside has a reason. Where a sentence opens a\n" +
		"numbered rule, the number is in brackets: checks and comments in the code cite it, such\n" +
		"as \"spec 4.1.1\".\n" +
		"`go test ./conformance/service -run TestSentencesTable -update` writes this page.\n")
	for _, section := range loadSentences(t).Sections {
		if len(section.Sentences) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n<a id=\"%s\"></a>\n\n## %s %s\n\n| | sentence | checks |\n|---|---|---|\n", features.Anchor(section.Section), section.Section, section.Title)
		for _, s := range section.Sentences {
			what := strings.Join(s.By, ", ")
			switch s.Unbound {
			case "destination":
				what = "*binds a destination*"
			case "definition":
				what = "*says what something is*"
			case "open":
				what = "*left open*"
			}
			if s.Excluded != "" {
				what = "not judged: " + s.Excluded
			}
			at := s.At
			if s.Rule != "" {
				at += fmt.Sprintf(` <a id="%s"></a>(%s)`, features.Anchor(s.Rule), s.Rule)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", at, cell(s.Says), cell(what))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(sentencesTable, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(sentencesTable)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have), "write it again with -update")
}

// cell keeps a text inside its column.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
