package report

import (
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/lists"
)

// member is one line of JSON that is laid out: the name, the value as it is written.
var member = regexp.MustCompile(`^\s*(?:"((?:[^"\\]|\\.)*)": )?(.*?),?$`)

// mark finds the lines that are wrong: by the values seen, else the members, else the values expected. sent is the request.
func mark(lines []string, expected, actual, sent string) []bool {
	for _, speaks := range []func(name, value string) bool{
		func(name, value string) bool { return quotes(subject(actual), name, value) },
		func(name, _ string) bool { return name != "result" && mentions(expected, name) },
		func(name, value string) bool { return quotes(expected, name, value) },
		func(name, value string) bool { return name == "error" && value == "{" && hasWord(expected, "result") },
	} {
		marked := make([]bool, len(lines))
		for i, l := range lines {
			if speaks(nameAndValue(l)) {
				for _, at := range wrongIn(lines, i, expected, sent) {
					marked[at] = true
				}
			}
		}
		if n := len(lists.Where(marked, func(is bool) bool { return is })); n > 0 && n <= maxMarks {
			return innermost(lines, marked)
		}
	}
	return make([]bool, len(lines))
}

// innermost takes the mark from the beginning of an object that has marked lines itself.
func innermost(lines []string, marked []bool) []bool {
	for i := range lines {
		for at := i + 1; marked[i] && at < len(lines) && indentOf(lines[at]) > indentOf(lines[i]); at++ {
			marked[i] = !marked[at]
		}
	}
	return marked
}

// firstMember is the beginning of an object in a text.
var firstMember = regexp.MustCompile(`\{"(?:[^"\\]|\\.)*":("(?:[^"\\]|\\.)*"|[^,}]+)`)

// subject is what a text describes of a response: of an object that it quotes, the first member.
func subject(actual string) string {
	if quoted := firstMember.FindStringSubmatch(actual); quoted != nil {
		return quoted[1]
	}
	return actual
}

// wrongIn gives the lines that are wrong where a finding speaks of line i. If that names an
// object, wrong is a member that was expected otherwise, or the status of a record that was sent.
func wrongIn(lines []string, i int, expected, sent string) []int {
	name, value := nameAndValue(lines[i])
	switch name {
	case "identifier", "field_api_name", "object_api_name":
	default:
		return []int{i}
	}
	var others []int
	status := -1
	for _, at := range siblings(lines, i) {
		other, _ := nameAndValue(lines[at])
		if other == "success" {
			status = at
		}
		if other != name && mentions(expected, other) {
			others = append(others, at)
		}
	}
	switch {
	case len(others) > 0:
		return others
	case status >= 0 && strings.Contains(sent, value) && !slices.Contains(lines[:i], lines[i]):
		return []int{status}
	}
	return []int{i}
}

// siblings are the members of the object that has line i.
func siblings(lines []string, i int) (all []int) {
	depth := indentOf(lines[i])
	from := i
	for from > 0 && indentOf(lines[from-1]) >= depth {
		from--
	}
	for at := from; at < len(lines) && indentOf(lines[at]) >= depth; at++ {
		if indentOf(lines[at]) == depth {
			all = append(all, at)
		}
	}
	return all
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func nameAndValue(line string) (name, value string) {
	parts := member.FindStringSubmatch(line) // which every line is
	return parts[1], parts[2]
}

// mentions reports whether a text names a member, alone or in the plural.
func mentions(s, member string) bool {
	return member != "" && (strings.Contains(s, `"`+member+`"`) || len(member) > 3 && (hasWord(s, member) || hasWord(s, member+"s")))
}

// quotes reports whether a text holds the value of a member.
func quotes(s, name, value string) bool {
	text, is := strings.CutPrefix(value, `"`)
	text = strings.TrimSuffix(text, `"`)
	switch {
	case is:
		return text != "" && strings.Contains(s, `"`+text+`"`) || len(text) >= 8 && strings.Contains(s, text)
	case value == "true" || value == "false" || value == "null":
		return name != "" && strings.Contains(s, `"`+name+`"`) && hasWord(s, value)
	}
	return len(value) >= 3 && hasWord(s, value)
}

// hasWord reports whether s holds word with no letter or digit next to it.
func hasWord(s, word string) bool {
	part := func(b byte) bool {
		return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	}
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(word)
		if (from == 0 || !part(s[from-1])) && (to == len(s) || !part(s[to])) {
			return true
		}
		at = to
	}
}
