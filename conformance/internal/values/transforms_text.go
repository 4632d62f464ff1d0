package values

import (
	"cmp"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/runes"
	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
)

var (
	tags        = regexp.MustCompile(`<[^<>]*>`)
	percent     = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)
	backslashed = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|[nrt0"'\\/])`)
	formula     = regexp.MustCompile(`^([=+@-])`)
	inQuotes    = regexp.MustCompile(`(?s)^"(.*)"$|^'(.*)'$`)
	spaces      = regexp.MustCompile(`[ \t]+`)
	control     = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`)
)

// textTransforms treat a text as something else than a text, or tidy it up.
var textTransforms = []Transform{
	onText("trim", Trimmed, "the spaces around it are gone", strings.TrimSpace, "  spaces  ", "\ttab\t", "\u00a0no break\u00a0"),
	onText("trim", Trimmed, "the spaces at its end are gone", func(s string) string { return strings.TrimRight(s, " ") }, "end "),
	onText("trim", Trimmed, "the line end at its end is gone", func(s string) string { return strings.TrimRight(s, "\r\n") }, "ends with a line end\n"),
	onText("trim", Trimmed, "spaces in a row became one", func(s string) string { return spaces.ReplaceAllString(s, " ") }, "two  spaces", "tab\there"),
	onText("trim", Trimmed, "all spaces in a row became one", func(s string) string { return strings.Join(strings.Fields(s), " ") }, "two  spaces"),
	onText("line ends", Trimmed, "its line ends became line feeds", replacing("\r\n", "\n", "\r", "\n"), "one\r\ntwo\nthree\rfour"),
	onText("line ends", Trimmed, "its carriage returns are gone", replacing("\r", ""), "one\r\ntwo\nthree\rfour"),
	onText("line ends", Trimmed, "its line feeds became carriage returns and line feeds", replacing("\r\n", "\r\n", "\n", "\r\n"), "one\r\ntwo\nthree\rfour"),
	onText("line ends", Trimmed, "its line ends became spaces", replacing("\r\n", " ", "\n", " ", "\r", " "), "one\r\ntwo\nthree\rfour"),

	onText("case", Case, "in lower case", strings.ToLower, "MiXed CaSe"),
	onText("case", Case, "in upper case", strings.ToUpper, "MiXed CaSe"),
	onText("case", Case, "with its first letter in upper case", titled(func(rune) bool { return false }), "small first"),
	onText("case", Case, "with the first letter of each word in upper case", titled(unicode.IsSpace), "small first"),

	onText("escape", Escaped, "with HTML entities", html.EscapeString, `<b>bold</b> & 'so' "it"`),
	onText("escape", Escaped, "with HTML entities for &, < and >", replacing("&", "&amp;", "<", "&lt;", ">", "&gt;"), `<b>bold</b> & 'so' "it"`),
	onText("escape", Escaped, "with percent escapes", url.QueryEscape, "50 % of it & more"),
	onText("escape", Escaped, "with percent escapes", url.PathEscape, "50 % of it & more"),
	onText("escape", Escaped, "with its quotes doubled", replacing("'", "''"), `say "hi" and 'so'`),
	onText("escape", Escaped, "with its quotes doubled", replacing(`"`, `""`), `say "hi" and 'so'`),
	onText("escape", Escaped, "with backslashes before quotes and backslashes", replacing(`\`, `\\`, "'", `\'`, `"`, `\"`), `say "hi" and 'so'`),
	onText("escape", Escaped, "with its backslashes doubled", replacing(`\`, `\\`), `C:\new \t \u0041`),
	onText("escape", Escaped, "as JSON, with quotes around it", func(s string) string { return string(Quote(s)) }, "plain"),
	onText("escape", Escaped, "as ASCII with \\u escapes", func(s string) string { ascii := strconv.QuoteToASCII(s); return ascii[1 : len(ascii)-1] }, "caf\u00e9"),
	onText("escape", Escaped, "behind an apostrophe", func(s string) string { return formula.ReplaceAllString(s, "'$1") }, "=1+1", "@home"),

	onText("unescape", Unescaped, "with its percent escapes decoded", func(s string) string {
		return percent.ReplaceAllStringFunc(s, unlessFails(url.PathUnescape))
	}, "a%20b%41"),
	onText("unescape", Unescaped, "with its plus signs as spaces", replacing("+", " "), "a+b"),
	onText("unescape", Unescaped, "decoded as a form field", unlessFails(url.QueryUnescape), "a%20b+c"),
	onText("unescape", Unescaped, "with its backslash escapes decoded", unbackslashed, `C:\new \t \u0041`),
	onText("unescape", Unescaped, "without its backslashes", replacing(`\\`, `\`, `\`, ""), `C:\new \t \u0041`),
	onText("unescape", Unescaped, "without the quotes around it", func(s string) string { return inQuotes.ReplaceAllString(s, "$1$2") }, `"quoted"`, `'quoted'`),
	onText("unescape", Unescaped, "with its doubled quotes made one", replacing("''", "'", `""`, `"`), `two "" and ''`),
	placeholder("{{x}}", `\{\{[^{}]*\}\}`, braces), placeholder("${x}", `\$\{[^{}]*\}`, braces), placeholder("#{x}", `#\{[^{}]*\}`, braces), placeholder("<%= x %>", `<%.*?%>`, braces),
	placeholder("{0}", `\{\d*\}`, formatted), placeholder("%s", `%[sd]`, formatted),
	placeholder(":x", `:\w+`, bound), placeholder("@x", `@\w+`, bound), placeholder("$1", `\$\d+`, bound), placeholder("$x", `\$\w+`, bound), placeholder("?", `\?`, bound),
	onText("decode entities", Unescaped, "with its HTML entities decoded", html.UnescapeString, "&amp; &lt;b&gt; &eacute;", "&copy"),
	onText("decode entities", Removed, "without its markup", func(s string) string { return tags.ReplaceAllString(s, "") }, "<b>bold</b>"),
	onText("decode entities", Removed, "without < and >", replacing("<", "", ">", ""), "<b>bold</b>"),

	onText("template", Evaluated, "with its doubled percent signs made one", replacing("%%", "%"), "100 %% of it"),
	onText("template", Evaluated, "with its doubled dollar signs made one", replacing("$$", "$"), "cost: 5 $$"),

	onText("statement", Removed, "without its quotes", replacing("'", "", `"`, "", "`", ""), `'; -- drop`, `say "hi" and 'so'`, "O'Neil `x`"),
	onText("statement", Prefix, "cut at its first apostrophe", before("'"), `'; -- drop`, `x' OR '1'='1`),
	onText("statement", Removed, "without what looks like a comment", before("--"), `'; -- drop`),
	onText("statement", Removed, "without its semicolons", replacing(";", ""), `'; -- drop`),
	onText("control characters", Removed, "without its control characters", func(s string) string { return control.ReplaceAllString(s, "") }, "a\x01\x1f\x7f\tb"),
}

// Texts with what template engines, formatters and drivers take for placeholders.
const (
	braces    = "{{x}} ${y} #{z} <%= x %>"
	formatted = "{0} %s %d {}"
	bound     = ":x @x $1 $x ?"
)

// placeholder is a template engine, a formatter or a driver that fills in placeholders.
func placeholder(example, pattern, text string) Transform {
	p := regexp.MustCompile(pattern)
	return onText("template", Evaluated, "with "+example+" taken for a placeholder", func(s string) string { return p.ReplaceAllString(s, "") }, text)
}

// titled writes the first letter in upper case, and each one behind such a character.
func titled(behind func(rune) bool) func(string) string {
	return func(s string) string {
		r := []rune(s)
		for i := range r {
			if i == 0 || behind(r[i-1]) {
				r[i] = unicode.ToUpper(r[i])
			}
		}
		return string(r)
	}
}

func unbackslashed(s string) string {
	return backslashed.ReplaceAllStringFunc(s, func(m string) string {
		if m[1] == 'u' {
			n, _ := strconv.ParseUint(m[2:], 16, 32)
			return string(rune(n))
		}
		return strings.NewReplacer("n", "\n", "r", "\r", "t", "\t", "0", "\x00").Replace(m[1:])
	})
}

// unicodeTransforms bring text into another form or a smaller character set.
var unicodeTransforms = []Transform{
	onText("normalise", Normalised, "in Unicode form NFC", norm.NFC.String, "e\u0301 combining"),
	onText("normalise", Normalised, "in Unicode form NFD", norm.NFD.String, "Gr\u00fc\u00dfe \u0130stanbul"),
	onText("normalise", Normalised, "in Unicode form NFKC", norm.NFKC.String, "\ufb01ne \u00b2 \u2460 \uff21"),
	onText("normalise", Normalised, "in Unicode form NFKD", norm.NFKD.String, "\ufb01ne \u00b2 \u2460 \uff21"),
	onText("normalise", Normalised, "without its accents", func(s string) string {
		return norm.NFC.String(runes.Remove(runes.In(unicode.Mn)).String(norm.NFD.String(s)))
	}, "Gr\u00fc\u00dfe \u0130stanbul", "caf\u00e9"),
	onText("normalise", Normalised, "with typographic quotes made plain", replacing("\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'", "\u2013", "-", "\u2026", "..."), "\u201cso\u201d \u2013 it\u2019s\u2026"),
	onText("character set", Removed, "without its byte order mark", func(s string) string { return strings.TrimPrefix(s, "\ufeff") }, "\ufeffbegins with a byte order mark"),
	onText("character set", Removed, "without characters of no width", replacing("\u200d", "", "\u200b", "", "\u200c", "", "\ufeff", ""), "\U0001f469\u200d\U0001f680 joined"),
	onText("character set", Charset, `with "?" for characters outside the basic plane`, mapped(0xffff, '?'), "\U0001f680 astral", "\U0001f469\u200d\U0001f680 joined"),
	onText("character set", Charset, "with U+FFFD for characters outside the basic plane", mapped(0xffff, '\ufffd'), "\U0001f680 astral"),
	onText("character set", Charset, "without characters outside the basic plane", mapped(0xffff, -1), "\U0001f680 astral"),
	onText("character set", Charset, `with "?" for characters outside Latin-1`, mapped(0xff, '?'), "\u4f60\u597d \u20ac", "\u05e9\u05dc\u05d5\u05dd right to left"),
	onText("character set", Charset, `with "?" for characters outside ASCII`, mapped(0x7f, '?'), "caf\u00e9"),
	onText("character set", Charset, "without characters outside ASCII", mapped(0x7f, -1), "caf\u00e9"),
	onText("character set", Misread, "as UTF-8 that was read as Latin-1", unlessFails(charmap.ISO8859_1.NewDecoder().String), "caf\u00e9"),
	onText("character set", Misread, "as UTF-8 that was read as Windows-1252", unlessFails(charmap.Windows1252.NewDecoder().String), "\u4f60\u597d \u20ac"),
}

// mapped writes something else for characters beyond a code point; -1 for nothing.
func mapped(last, instead rune) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if r > last {
				return instead
			}
			return r
		}, s)
	}
}

// nullMarkers are what bulk loaders and spreadsheets take for no value.
var nullMarkers = []string{`\N`, "NULL", "null", "nil", "None", "N/A", "#N/A", "n/a", "-", "undefined", "NaN", "(null)", ""}

// castTransforms read a text as a value of another type.
var castTransforms = []Transform{
	onRaw("null markers", rpc.TypeString, Null, "the text was taken for a marker of no value", markedAs("null"), quoted(nullMarkers)...),
	onRaw("null markers", rpc.TypeString, Constant, "an empty text", markedAs(`""`), quoted(nullMarkers[:12])...),
	onRaw("cast", rpc.TypeString, Retyped, "it was read as a number", castNumber, `"00042"`, `"1e3"`, `"1.50"`, `"-0"`, `" 7"`),
	onRaw("cast", rpc.TypeString, Retyped, "it was read as JSON", castJSON, `"true"`, `"[1, 2]"`, `"{\"a\": 1}"`, `"42"`),
	onText("cast", Reformatted, "it was read as a number and written again", func(s string) string {
		if raw := castNumber(Quote(s)); raw[0] != '"' {
			return string(raw)
		}
		return s
	}, "00042", "1e3", "1.50", "+491511234567", "12345678901234567890"),
	onText("cast", Reformatted, "it was read as JSON and written again", func(s string) string {
		if raw := castJSON(Quote(s)); raw[0] == '{' || raw[0] == '[' {
			return string(raw)
		}
		return s
	}, "[1, 2]", `{"a": 1}`),
	onText("cast", Reformatted, "it was read as a boolean and written again", func(s string) string { return cmp.Or(booleans[s], s) }, "true", "yes", "off", "t"),
	onText("cast", Reformatted, "it was read as a date and written again", func(s string) string {
		if at, ok := Moment(s); ok {
			return at.Format("2006-01-02T15:04:05Z")
		}
		return s
	}, "2021-03-29", "3/4"),
}

// booleans are words that are read as a boolean, as some encoder writes it.
var booleans = map[string]string{
	"true": "True", "false": "False", "yes": "true", "no": "false", "on": "true", "off": "false", "TRUE": "true", "t": "true", "f": "false",
}

// markedAs makes a value of the markers of no value.
func markedAs(value string) func(json.RawMessage) json.RawMessage {
	return func(raw json.RawMessage) json.RawMessage {
		if slices.Contains(nullMarkers, Text(raw)) {
			return json.RawMessage(value)
		}
		return raw
	}
}

func castNumber(raw json.RawMessage) json.RawMessage {
	f, err := strconv.ParseFloat(strings.TrimSpace(Text(raw)), 64)
	if err != nil || f != f || f > 1e300 || f < -1e300 {
		return raw
	}
	return json.RawMessage(strconv.FormatFloat(f, 'f', -1, 64))
}

// castJSON is the value that a text spells, without the spaces in it.
func castJSON(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal([]byte(Text(raw)), &v) != nil || v == nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
