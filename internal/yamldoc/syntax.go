package yamldoc

import "strings"

// plain are the messages of the YAML library that do not say what to do, by their
// beginning, with what an author of a file can do about it. The longer of two that begin
// alike stands first.
var plain = []struct{ message, means string }{
	{"found character '\t' that cannot start any token", tabs},
	{"tab character cannot use", tabs},
	{"mapping value is not allowed in this context", "this value has a key with a colon in it: put the value in quotes, or check the indentation of the line below"},
	{"value is not allowed in this context. map key-value is pre-defined", "there is more text behind the end of the value: put the whole value in one pair of quotes"},
	{"value is not allowed in this context", "this line does not fit those above it: check its indentation"},
	{"non-map value is specified", "expected a key with its value, such as key: value"},
	{"unexpected key name", "expected a key with its value, such as key: value"},
	{"unexpected map key", "expected a key with its value, such as key: value"},
	{"map key definition includes an implicit line break", "a key and its colon must be on one line"},
	{"sequence end token ']' not found", "the list has no ] at its end, or a comma is missing"},
	{"',' or ']' must be specified", "the list has no ] at its end, or a comma is missing"},
	{"could not find flow mapping end token '}'", "the mapping has no } at its end, or a comma is missing"},
	{"',' or '}' must be specified", "the mapping has no } at its end, or a comma is missing"},
	{"could not find '[' character corresponding to ']'", "there is a ] without its ["},
	{"could not find '{' character corresponding to '}'", "there is a } without its {"},
	{"could not find end character of double-quoted text", `the text has no " at its end`},
	{"could not find end character of single-quoted text", "the text has no ' at its end"},
	{"could not find alias", "there is no anchor of this name above: put text that begins with * in quotes"},
	{"block sequence entries are not allowed in this context", "a list must begin on the line below its key"},
	{"found unknown escape character", `the text in double quotes has an escape that YAML does not know: write \\ for a backslash, or use single quotes`},
}

const tabs = "the line begins with a tab: YAML is indented with spaces"

// plainly puts a message of the YAML library into words for authors of files.
func plainly(message string) string {
	for _, p := range plain {
		if strings.HasPrefix(message, p.message) {
			return p.means
		}
	}
	if character, ok := strings.CutSuffix(message, " is a reserved character"); ok {
		return "text cannot begin with " + character + ": put it in quotes"
	}
	key, isKey := strings.CutPrefix(message, "mapping key ")
	if key, place, twice := strings.Cut(key, " already defined at ["); isKey && twice {
		line, _, _ := strings.Cut(place, ":")
		return "the key " + key + " is here a second time, the first is in line " + line
	}
	return message
}
