// Package page is the look that all HTML pages of the program have in common:
// colours for light, dark and paper, type, cards, tables, and the places for a
// verdict and for figures. A page is one file: nothing in it refers to the outside.
//
// The parts of only one page, a chart or a list of checks, are in the style of that page.
package page

import (
	_ "embed"
	"html/template"
	"regexp"
)

// Style is the sheet that a page begins its own with.
//
//go:embed page.css
var Style string

// Policy is the content security policy of a page without a script.
const Policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

// flag is an option of a command in a sentence, with its value.
var flag = regexp.MustCompile(`--[a-z][a-z-]+( [A-Z]+\b)?`)

// Sentence is text for a page in which no option of a command is broken over two
// lines: after its hyphens a browser would.
func Sentence(s string) template.HTML {
	escaped := template.HTMLEscapeString(s)
	return template.HTML(flag.ReplaceAllString(escaped, `<span class="flag">$0</span>`)) // everything else is escaped
}

// Outline is one report. Its texts are without control characters, and bounded.
type Outline struct {
	// Tone is the colour of the verdict: good, part, bad or open.
	Tone    string
	Summary string // without the verdict, which it begins with in the report
	Counts  []Count
	// Failures gate, Warnings do not, Waived are known and accepted.
	Failures, Warnings, Waived []Check
	Undecided                  []Undecided
	Problems                   []Problem // those that the failures do not say themselves
}

// Count is how many checks have a status.
type Count struct {
	Status, Tone string
	Checks       int
}

// Check is a check with its findings.
type Check struct {
	ID, Title, Status, Tone string
	Rank                    string // "MUST · spec 7.2.4"
	Reason, Waiver          string
	Causes                  []Cause
	Findings                []Finding // each by itself, in the order of the report
	Again                   string    // the command that judges it again, "" without one
}

// Cause is what findings have in common, with the exchanges that show it.
type Cause struct {
	Rule, CauseLabel, Cause, Fix, Curl string // "": said already, or not known
	Examples                           []Finding
	More                               int   // findings that are not among the examples
	Exchanges                          []int // the numbers of those that show it, in order
}

// Finding holds the expectation and the observation. Place and Expected are "" where they
// are those of the one before.
type Finding struct {
	Place, Expected, Actual string
	Times                   int   // that the same was seen
	Exchanges               []int // the numbers of those that show it
}

// Undecided is a set of checks that the same thing would decide.
type Undecided struct {
	What   string // "decided by a read-back hook", "blocked by RES-002"
	How    string // the flag that grants it, "" when there is none
	Checks []Check
	Musts  int // of them
}

// Problem is a reason why a judgement cannot be trusted.
type Problem struct{ Message, Fix string }
