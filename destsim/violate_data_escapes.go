package destsim

import (
	"html"
	"net/url"
	"strings"
)

// escapedViolations escape texts, unescape them, or change their line ends
// (DAT-011.4 to DAT-011.9).
func escapedViolations() []violation {
	cutLine := func(text string) string { return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r") }
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\'`, `'`, `\/`, `/`).Replace
	markup := strings.NewReplacer("&", html.EscapeString("&"), "<", html.EscapeString("<"), ">", html.EscapeString(">")).Replace
	return []violation{
		altersText("DAT-011.4", "the characters &, < and > are stored as HTML entities", markup),
		altersText("DAT-011.5", "line ends of carriage return and line feed are stored as line feeds",
			func(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }),
		altersText("DAT-011.6", "a line end at the end of a string is cut off", cutLine),
		altersText("DAT-011.7", "a backslash escape in a string, such as the two characters of \\n, is stored as what it stands for", unescape),
		altersText("DAT-011.8", "percent escapes in a string are stored decoded", func(text string) string {
			decoded, err := url.PathUnescape(text)
			if err != nil {
				return text
			}
			return decoded
		}),
		altersText("DAT-011.9", "a plus sign in a string is stored as a space",
			func(text string) string { return strings.ReplaceAll(text, "+", " ") }),
	}
}
