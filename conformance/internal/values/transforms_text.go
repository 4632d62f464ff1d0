package values

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
)

var (
	tags        = regexp.MustCompile(`<[^<>]*>`)
	percent     = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)
	backslashed = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|[nrt0"'\\/])`)
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
	onText("line ends", Trimmed, "its line ends became line feeds", func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n") }, "one\r\ntwo\nthree\rfour"),
	onText("line ends", Trimmed, "its carriage returns are gone", func(s string) string { return strings.ReplaceAll(s, "\r", "") }, "one\r\ntwo\nthree\rfour"),
	onText("line ends", Trimmed, "its line feeds became carriage returns and line feeds", func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n") }, "one\r\ntwo\nthree\rfour"),
	onText("line ends", Trimmed, "its line ends became spaces", replacing("\r\n", " ", "\n", " ", "\r", " "), "one\r\ntwo\nthree\rfour"),

	onText("case", Case, "in lower case", strings.ToLower, "MiXed CaSe"),
	onText("case", Case, "in upper case", strings.ToUpper, "MiXed CaSe"),
	onText("case", Case, "with its first letter in upper case", func(s string) string {
		r := []rune(s)
		if len(r) > 0 {
			r[0] = unicode.ToUpper(r[0])
		}
		return string(r)
	}, "small first"),
	onText("case", Case, "with the first letter of each word in upper case", titled, "small first"),

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
	onText("escape", Escaped, "behind an apostrophe", func(s string) string {
		if s != "" && strings.Contains("=+-@", s[:1]) {
			return "'" + s
		}
		return s
	}, "=1+1", "@home"),

	onText("unescape", Unescaped, "with its percent escapes decoded", func(s string) string {
		return percent.ReplaceAllStringFunc(s, func(m string) string {
			if plain, err := url.PathUnescape(m); err == nil {
				return plain
			}
			return m
		})
	}, "a%20b%41"),
	onText("unescape", Unescaped, "with its plus signs as spaces", func(s string) string { return strings.ReplaceAll(s, "+", " ") }, "a+b"),
	onText("unescape", Unescaped, "decoded as a form field", func(s string) string {
		if plain, err := url.QueryUnescape(s); err == nil {
			return plain
		}
		return s
	}, "a%20b+c"),
	onText("unescape", Unescaped, "with its backslash escapes decoded", unbackslashed, `C:\new \t \u0041`),
	onText("unescape", Unescaped, "without its backslashes", replacing(`\\`, `\`, `\`, ""), `C:\new \t \u0041`),
	onText("unescape", Unescaped, "without the quotes around it", func(s string) string {
		if len(s) > 1 && s[0] == s[len(s)-1] && strings.Contains(`"'`, s[:1]) {
			return s[1 : len(s)-1]
		}
		return s
	}, `"quoted"`, `'quoted'`),
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
	onText("statement", Prefix, "cut at its first apostrophe", func(s string) string { first, _, _ := strings.Cut(s, "'"); return first }, `'; -- drop`, `x' OR '1'='1`),
	onText("statement", Removed, "without what looks like a comment", func(s string) string { first, _, _ := strings.Cut(s, "--"); return first }, `'; -- drop`),
	onText("statement", Removed, "without its semicolons", replacing(";", ""), `'; -- drop`),
	onText("control characters", Removed, "without its control characters", func(s string) string { return control.ReplaceAllString(s, "") }, "a\x01\x1f\x7f\tb"),
}

// Texts with what template engines, formatters and drivers take for placeholders.
const (
	braces    = "{{x}} ${y} #{z} <%= x %>"
	formatted = "{0} %s %d {}"
	bound     = ":x @x $1 $x ?"
)

// placeholder is a template engine, a formatter or a driver that fills in what looks
// like a placeholder.
func placeholder(example, pattern, text string) Transform {
	p := regexp.MustCompile(pattern)
	return onText("template", Evaluated, "with "+example+" taken for a placeholder", func(s string) string { return p.ReplaceAllString(s, "") }, text)
}

func titled(s string) string {
	r := []rune(s)
	for i := range r {
		if i == 0 || unicode.IsSpace(r[i-1]) {
			r[i] = unicode.ToUpper(r[i])
		}
	}
	return string(r)
}

func unbackslashed(s string) string {
	return backslashed.ReplaceAllStringFunc(s, func(m string) string {
		switch m[1] {
		case 'n':
			return "\n"
		case 'r':
			return "\r"
		case 't':
			return "\t"
		case '0':
			return "\x00"
		case 'u':
			n, _ := strconv.ParseUint(m[2:], 16, 32)
			return string(rune(n))
		}
		return m[1:]
	})
}

// unicodeTransforms bring text into another form or a smaller character set.
var unicodeTransforms = []Transform{
	onText("normalise", Normalised, "in Unicode form NFC", norm.NFC.String, "e\u0301 combining"),
	onText("normalise", Normalised, "in Unicode form NFD", norm.NFD.String, "Gr\u00fc\u00dfe \u0130stanbul"),
	onText("normalise", Normalised, "in Unicode form NFKC", norm.NFKC.String, "\ufb01ne \u00b2 \u2460 \uff21"),
	onText("normalise", Normalised, "in Unicode form NFKD", norm.NFKD.String, "\ufb01ne \u00b2 \u2460 \uff21"),
	onText("normalise", Normalised, "without its accents", withoutAccents, "Gr\u00fc\u00dfe \u0130stanbul", "caf\u00e9"),
	onText("normalise", Normalised, "with typographic quotes made plain", replacing("\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'", "\u2013", "-", "\u2026", "..."), "\u201cso\u201d \u2013 it\u2019s\u2026"),
	onText("character set", Removed, "without its byte order mark", func(s string) string { return strings.TrimPrefix(s, "\ufeff") }, "\ufeffbegins with a byte order mark"),
	onText("character set", Removed, "without characters of no width", replacing("\u200d", "", "\u200b", "", "\u200c", "", "\ufeff", ""), "\U0001f469\u200d\U0001f680 joined"),
	onText("character set", Charset, `with "?" for characters outside the basic plane`, mapped(0xffff, "?"), "\U0001f680 astral", "\U0001f469\u200d\U0001f680 joined"),
	onText("character set", Charset, "with U+FFFD for characters outside the basic plane", mapped(0xffff, "\ufffd"), "\U0001f680 astral"),
	onText("character set", Charset, "without characters outside the basic plane", mapped(0xffff, ""), "\U0001f680 astral"),
	onText("character set", Charset, `with "?" for characters outside Latin-1`, mapped(0xff, "?"), "\u4f60\u597d \u20ac", "\u05e9\u05dc\u05d5\u05dd right to left"),
	onText("character set", Charset, `with "?" for characters outside ASCII`, mapped(0x7f, "?"), "caf\u00e9"),
	onText("character set", Charset, "without characters outside ASCII", mapped(0x7f, ""), "caf\u00e9"),
	onText("character set", Charset, "as UTF-8 that was read as Latin-1", func(s string) string {
		var out []rune
		for _, b := range []byte(s) {
			out = append(out, rune(b))
		}
		return string(out)
	}, "caf\u00e9"),
}

// mapped writes something else for characters beyond a code point.
func mapped(last rune, instead string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if r > last {
				b.WriteString(instead)
			} else {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
}

func withoutAccents(s string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s)))
}

// nullMarkers are what bulk loaders and spreadsheets take for no value.
var nullMarkers = []string{`\N`, "NULL", "null", "nil", "None", "N/A", "#N/A", "n/a", "-", "undefined", "NaN", "(null)", ""}

// castTransforms read a text as a value of another type.
var castTransforms = func() []Transform {
	out := []Transform{
		{
			Name: "null markers", Class: Null, Type: rpc.TypeString, Says: "the text was taken for a marker of no value", Shows: quoted(nullMarkers...),
			Apply: func(raw json.RawMessage) json.RawMessage {
				for _, m := range nullMarkers {
					if Text(raw) == m {
						return json.RawMessage("null")
					}
				}
				return raw
			},
		},
		{
			Name: "null markers", Class: Constant, Type: rpc.TypeString, Says: "an empty text", Shows: quoted(nullMarkers[:12]...),
			Apply: func(raw json.RawMessage) json.RawMessage {
				for _, m := range nullMarkers {
					if Text(raw) == m {
						return json.RawMessage(`""`)
					}
				}
				return raw
			},
		},
		{Name: "cast", Class: Retyped, Type: rpc.TypeString, Says: "it was read as a number", Apply: castNumber, Shows: quoted("00042", "1e3", "1.50", "-0", " 7")},
		{Name: "cast", Class: Retyped, Type: rpc.TypeString, Says: "it was read as JSON", Apply: castJSON, Shows: quoted("true", "[1, 2]", `{"a": 1}`, "42")},
	}
	return append(out,
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
		onText("cast", Reformatted, "it was read as a boolean and written again", replaceWhole(map[string]string{"true": "True", "false": "False", "yes": "true", "no": "false", "on": "true", "off": "false", "TRUE": "true", "t": "true", "f": "false"}), "true", "yes", "off", "t"),
		onText("cast", Reformatted, "it was read as a date and written again", func(s string) string {
			if at, ok := Moment(s); ok {
				return at.Format("2006-01-02T15:04:05Z")
			}
			return s
		}, "2021-03-29", "3/4"))
}()

func replaceWhole(words map[string]string) func(string) string {
	return func(s string) string {
		if other, ok := words[s]; ok {
			return other
		}
		return s
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
	text := Text(raw)
	var v any
	if json.Unmarshal([]byte(text), &v) != nil || v == nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
