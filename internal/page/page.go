// Package page is the look that all HTML pages of the program have in common:
// colours for light, dark and paper, type, cards, tables, and the places for a
// verdict and for figures. A page is one file: nothing in it refers to the outside.
//
// What only one page has, a chart or a list of checks, is in the style of that page.
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
