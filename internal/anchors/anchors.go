// Package anchors finds the sentences of the specification in the documentation: the
// pages have an anchor for each section, which reports and explanations lead to.
package anchors

// documentation is where the pages of docs/ are read.
const documentation = "https://github.com/destkit/destkit/blob/main/docs/"

// URL is the page and anchor that has the sentences of a section of the specification,
// such as "7.2.4": of a service the page of all sentences, else that of the protocol.
func URL(service bool, section string) string {
	page := "protocol.md"
	if service {
		page = "evidence/service-sentences.md"
	}
	return documentation + page + "#" + Of(section)
}

// Of is the anchor of a section on either page.
func Of(section string) string { return "spec-" + section }
