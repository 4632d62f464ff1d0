package conformance

import (
	"regexp"
	"strings"
)

// methodOfArea says which method the checks of an area are about, by the letters
// of their ids. Areas that are left out are about every call.
var methodOfArea = map[string]string{
	"CON": methodInExample, "STA": methodInExample, "PAR": methodInExample,
	"OBJ": "list_objects", "FLD": "list_fields", "OPS": "supported_operations", "SPD": "get_sync_speed",
	"RES": "sync_batch", "SEM": "sync_batch", "DUR": "sync_batch", "DUP": "sync_batch", "DAT": "sync_batch",
}

// methodInExample marks areas whose good exchange has the method. What they show
// with a planning call holds for every call.
const methodInExample = "*"

var methodMember = regexp.MustCompile(`"method":"(test_connection|list_objects|sync_batch)"`)

// Method is the method of the protocol that a check of a destination is about, ""
// for one about every call.
func (c *Check) Method() string {
	area, _, _ := strings.Cut(c.ID, "-")
	method := methodOfArea[area]
	if method != methodInExample {
		return method
	}
	found := methodMember.FindStringSubmatch(c.Good)
	if found == nil || (area != "CON" && found[1] != "sync_batch") {
		return ""
	}
	return found[1]
}
