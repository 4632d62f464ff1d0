package features

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
