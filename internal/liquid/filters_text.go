package liquid

import (
	"encoding/base64"
	"errors"
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// white is what strip and whitespace control remove.
const white = " \t\n\v\f\r\x00"

var (
	lineBreak = regexp.MustCompile(`\r?\n`)
	// Scripts, comments and styles go with what is in them, other tags alone.
	htmlBlocks  = regexp.MustCompile(`(?s)<script.*?</script>|<!--.*?-->|<style.*?</style>`)
	htmlTags    = regexp.MustCompile(`(?s)<.*?>`)
	htmlEscaped = regexp.MustCompile(`^&(?:[a-zA-Z]+|#\d+);`)
	spaces      = regexp.MustCompile(`\s+`)
)

var textFilters = map[string]filter{
	"downcase":       onText(strings.ToLower),
	"upcase":         onText(upper),
	"capitalize":     onText(capitalize),
	"strip":          onText(func(s string) string { return strings.Trim(s, white) }),
	"lstrip":         onText(func(s string) string { return strings.TrimLeft(s, white) }),
	"rstrip":         onText(func(s string) string { return strings.TrimRight(s, white) }),
	"strip_newlines": onText(func(s string) string { return lineBreak.ReplaceAllString(s, "") }),
	"newline_to_br":  onText(func(s string) string { return lineBreak.ReplaceAllString(s, "<br />\n") }),
	"strip_html": onText(func(s string) string {
		return htmlTags.ReplaceAllString(htmlBlocks.ReplaceAllString(s, ""), "")
	}),
	"escape_once": onText(escapeOnce),
	"escape":      onPresent(func(s string) (any, error) { return escapeHTML(s), nil }),
	"h":           onPresent(func(s string) (any, error) { return escapeHTML(s), nil }),
	"squish":      onPresent(func(s string) (any, error) { return strings.Trim(spaces.ReplaceAllString(s, " "), white), nil }),
	"url_encode":  onPresent(func(s string) (any, error) { return url.QueryEscape(s), nil }),
	"url_decode":  onPresent(urlDecode),

	"base64_encode":          onText(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"base64_url_safe_encode": onText(func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }),
	"base64_decode":          decodeBase64("base64_decode", base64.StdEncoding),
	"base64_url_safe_decode": decodeBase64("base64_url_safe_decode", base64.URLEncoding),

	"append":        onTwoTexts(func(s, t string) string { return s + t }),
	"prepend":       onTwoTexts(func(s, t string) string { return t + s }),
	"remove":        onTwoTexts(func(s, t string) string { return strings.ReplaceAll(s, t, "") }),
	"remove_first":  onTwoTexts(func(s, t string) string { return strings.Replace(s, t, "", 1) }),
	"remove_last":   onTwoTexts(func(s, t string) string { return replaceLast(s, t, "") }),
	"replace":       {1, 2, replaceWith(-1)},
	"replace_first": {1, 2, replaceWith(1)},
	"replace_last": {2, 2, func(_ *run, input any, args []any) (any, error) {
		return replaceLast(toText(input), toText(args[0]), toText(args[1])), nil
	}},
	"slice":         {1, 2, slice},
	"split":         {1, 1, func(_ *run, input any, args []any) (any, error) { return split(toText(input), toText(args[0])), nil }},
	"truncate":      {0, 2, truncate},
	"truncatewords": {0, 2, truncateWords},
}

// upper knows the letters that become two, such as ß. ASCII takes the short way.
func upper(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

// capitalize makes the first character large and all others small.
func capitalize(s string) string {
	if s == "" {
		return ""
	}
	_, n := utf8.DecodeRuneInString(s)
	// ß becomes SS, of which only the first letter is large.
	first := []rune(upper(s[:n]))
	for i := range first[1:] {
		first[i+1] = unicode.ToLower(first[i+1])
	}
	return string(first) + strings.ToLower(s[n:])
}

// onTwoTexts is a filter of a text and one argument.
func onTwoTexts(apply func(s, t string) string) filter {
	return filter{1, 1, func(_ *run, input any, args []any) (any, error) {
		return apply(toText(input), toText(args[0])), nil
	}}
}

// decodeBase64 refuses what is not exactly base64: a guess would be wrong data
// in a record.
func decodeBase64(name string, encoding *base64.Encoding) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) {
		s := toText(input)
		if encoding == base64.URLEncoding && !strings.HasSuffix(s, "=") {
			// Padding may be left out in the safe alphabet only.
			s += strings.Repeat("=", (4-len(s)%4)%4)
		}
		if text, err := encoding.Strict().DecodeString(s); err == nil && !strings.ContainsAny(s, "\r\n") {
			return string(text), nil
		}
		return nil, errors.New("invalid base64 provided to " + name)
	}}
}

// escapeHTML writes quotes as the published language does.
func escapeHTML(s string) string {
	return strings.ReplaceAll(html.EscapeString(s), "&#34;", "&quot;")
}

// escapeOnce leaves alone what is escaped already.
func escapeOnce(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '<', '>', '"', '\'':
			b.WriteString(escapeHTML(s[i : i+1]))
		case '&':
			if htmlEscaped.MatchString(s[i:]) {
				b.WriteByte('&')
			} else {
				b.WriteString("&amp;")
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// urlDecode leaves a percent sign that starts no code as it is.
func urlDecode(s string) (any, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b.WriteByte(' ')
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b.WriteByte(hexValue(s[i+1])<<4 | hexValue(s[i+2]))
			i += 2
		default:
			b.WriteByte(s[i])
		}
	}
	if !utf8.ValidString(b.String()) {
		return nil, errors.New("invalid byte sequence in UTF-8")
	}
	return b.String(), nil
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// replaceWith replaces the first count finds, or all. In the replacement \0
// stands for the find and \\ for a backslash.
func replaceWith(count int) func(*run, any, []any) (any, error) {
	return func(_ *run, input any, args []any) (any, error) {
		find, by := toText(args[0]), toText(argument(args, 1, ""))
		if strings.Contains(by, `\`) {
			by = strings.NewReplacer(`\\`, `\`, `\0`, find, `\&`, find, `\1`, "", `\2`, "", `\3`, "",
				`\4`, "", `\5`, "", `\6`, "", `\7`, "", `\8`, "", `\9`, "").Replace(by)
		}
		return strings.Replace(toText(input), find, by, count), nil
	}
}

// replaceLast replaces the last find, if there is one.
func replaceLast(s, find, by string) string {
	at := strings.LastIndex(s, find)
	if at < 0 {
		return s
	}
	return s[:at] + by + s[at+len(find):]
}

// slice takes characters of a text or items of an array; a negative start
// counts from the end.
func slice(_ *run, input any, args []any) (any, error) {
	start, err := toInteger(args[0])
	if err != nil {
		return nil, err
	}
	length := int64(1)
	if given := argument(args, 1, nil); truthy(given) {
		if length, err = toInteger(given); err != nil {
			return nil, err
		}
	}
	if items, ok := input.([]any); ok {
		from, to, ok := sliceBounds(int64(len(items)), start, length)
		if !ok {
			return []any{}, nil
		}
		return items[from:to], nil
	}
	runes := []rune(toText(input))
	from, to, ok := sliceBounds(int64(len(runes)), start, length)
	if !ok {
		return "", nil
	}
	return string(runes[from:to]), nil
}

// sliceBounds gives the bounds of what exists; ok is false where the start lies
// outside.
func sliceBounds(size, start, length int64) (from, to int64, ok bool) {
	if start < 0 {
		start += size
	}
	if start < 0 || start > size || length < 0 {
		return 0, 0, false
	}
	return start, start + min(length, size-start), true
}

// split cuts a text as the published language does: a single space stands for
// any white space, an empty pattern for every character, and empty pieces at
// the end are dropped.
func split(s, pattern string) []any {
	var pieces []string
	switch {
	case s == "":
	case pattern == " ":
		pieces = strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(white, r) })
	default:
		pieces = strings.Split(s, pattern)
	}
	// Empty pieces at the start and in between stay.
	for len(pieces) > 0 && pieces[len(pieces)-1] == "" {
		pieces = pieces[:len(pieces)-1]
	}
	out := make([]any, len(pieces))
	for i, piece := range pieces {
		out[i] = piece
	}
	return out
}

// truncate counts the ending into the length.
func truncate(_ *run, input any, args []any) (any, error) {
	if input == nil {
		return nil, nil
	}
	length, err := toInteger(argument(args, 0, int64(50)))
	if err != nil {
		return nil, err
	}
	runes, ending := []rune(toText(input)), toText(argument(args, 1, "..."))
	if int64(len(runes)) <= length {
		return string(runes), nil
	}
	// An ending that is longer than the text may be is printed as a whole.
	keep := max(0, length-int64(utf8.RuneCountInString(ending)))
	return string(runes[:keep]) + ending, nil
}

// truncateWords keeps the text as it is when it has no more words.
func truncateWords(_ *run, input any, args []any) (any, error) {
	if input == nil {
		return nil, nil
	}
	count, err := toInteger(argument(args, 0, int64(15)))
	if err != nil {
		return nil, err
	}
	count = max(1, count)
	text := toText(input)
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(white, r) })
	// White space behind the last word counts as one more.
	more := text != strings.TrimRight(text, white)
	if n := int64(len(words)); n < count || n == count && !more {
		return text, nil
	}
	return strings.Join(words[:count], " ") + toText(argument(args, 1, "...")), nil
}
