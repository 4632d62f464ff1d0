// Package features holds the catalogue of the judge as Gherkin: one scenario is one check, its tags
// carry the id, the level, the authority and what it needs, its name is the claim, and its
// description is what an author of an endpoint must know when it fails. Every list of checks that
// the program prints is read from these files; there is no second list.
//
// The package owns only the files: it does not know how a step is carried out or what a verdict is.
package features

import (
	"embed"
)

// FS holds the feature files, destination/*.feature and service/*.feature. A tag
// line of a feature applies to all of its scenarios.
//
//go:embed destination/*.feature service/*.feature
var FS embed.FS

// IDs is the list of all check ids, one per line, in the order of the catalogue. Ids
// are only appended, never renumbered and never reused: a missing id was given up.
//
//go:embed ids.txt
var IDs string

// ServiceSentences maps every sentence of the specification to the checks of the
// service suite that judge it, as YAML.
//
//go:embed service/sentences.yaml
var ServiceSentences string

// documentation is where the pages of docs/ are read.
const documentation = "https://github.com/destkit/destkit/blob/main/docs/"

// AnchorURL is the page and anchor that has the sentences of a section of the specification,
// such as "7.2.4": of a service the page of all sentences, else that of the protocol.
func AnchorURL(service bool, section string) string {
	page := "protocol.md"
	if service {
		page = "evidence/service-sentences.md"
	}
	return documentation + page + "#" + Anchor(section)
}

// Anchor is the anchor of a section on either page.
func Anchor(section string) string { return "spec-" + section }
