package destsim

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// numberText is what some servers take for a number when it stands in a string.
var numberText = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][+-]?\d+)?$`)

// idViolations change the id of the replies of test_connection (RPC-003).
func idViolations() []violation {
	id := func(name, changes string, change func(id string) any) violation {
		return breaks(name, changes, seams{envelope: func(c *call, e *envelope) {
			if !gives(c, rpc.MethodTestConnection) {
				return
			}
			text, err := rawjson.StringText(c.id)
			if err != nil {
				return // not a string: the service sends none of those
			}
			if changed := change(text); changed != text {
				e.set("id", changed) // an id that stays keeps its escapes
			}
		}})
	}
	return []violation{
		id("RPC-003", `test_connection always answers the id "1"`, func(string) any { return "1" }),
		id("RPC-003.2", `test_connection answers an id that is the text of a number ("007", "1e3") as a number`, func(id string) any {
			if n, err := strconv.ParseFloat(id, 64); err == nil && numberText.MatchString(id) {
				return n
			}
			return id
		}),
		id("RPC-003.3", "test_connection trims spaces from the id", func(id string) any { return strings.TrimSpace(id) }),
		id("RPC-003.4", "test_connection cuts the id after 255 characters", func(id string) any {
			if utf8.RuneCountInString(id) > 255 {
				return string([]rune(id)[:255])
			}
			return id
		}),
		id("RPC-003.5", "test_connection answers the id in the Unicode form NFC", func(id string) any { return norm.NFC.String(id) }),
	}
}
