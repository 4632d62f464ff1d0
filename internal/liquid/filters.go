package liquid

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	library "github.com/osteele/liquid/filters"
	"github.com/osteele/liquid/values"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/destkit/destkit/internal/rawjson"
)

// filter is one filter: how many arguments it takes besides its input, and what
// it does.
type filter struct {
	least, most int
	apply       func(r *run, input any, args []any) (any, error)
}

// filters are those of Liquid 5.4, those of its successors that the service offers
// (find, find_index, has, reject, squish), and the service's own.
var filters = newFilters()

func newFilters() map[string]filter {
	all := map[string]filter{}
	standard := dictionary{}
	library.AddStandardFilters(standard)
	for arity, names := range libraryFilters {
		for name := range strings.FieldsSeq(names) {
			all[name] = filter{arity[0], arity[1], standard.filter(name)}
		}
	}
	for _, ours := range []map[string]filter{textFilters, numberFilters, arrayFilters} {
		maps.Copy(all, ours)
	}
	return all
}

// libraryFilters are those of the library that behave as published, by the number
// of their arguments.
var libraryFilters = map[[2]int]string{
	{0, 0}: "capitalize downcase url_encode url_decode",
	{1, 1}: "append prepend remove remove_first remove_last",
	{1, 2}: "replace replace_first slice",
	{2, 2}: "replace_last",
	{0, 2}: "truncate truncatewords",
}

// dictionary takes the library's filters.
type dictionary map[string]any

// AddFilter implements the library's interface.
func (d dictionary) AddFilter(name string, apply any) { d[name] = apply }

// filter calls one of the library's with texts in our notation.
func (d dictionary) filter(name string) func(*run, any, []any) (any, error) {
	apply := reflect.ValueOf(d[name])
	return func(r *run, input any, args []any) (any, error) {
		given := append([]any{input}, args...)
		for i := range given {
			kind := apply.Type().In(i)
			if kind.Kind() == reflect.Func { // of an argument that may be left out
				kind = kind.Out(0)
			}
			var err error
			switch kind.Kind() {
			case reflect.String:
				given[i] = toText(given[i])
			case reflect.Int:
				given[i], err = toInteger(given[i])
			case reflect.Interface: // slice takes lists and texts
				if _, isList := given[i].([]any); !isList {
					given[i] = toText(given[i])
				}
			}
			if err != nil {
				return nil, err
			}
		}
		if strings.HasPrefix(name, "replace") && len(args) == 2 {
			// Each find may be replaced by a long text.
			if err := r.repeated(strings.Count(given[0].(string), given[1].(string)), given[2].(string)); err != nil {
				return nil, err
			}
		}
		return values.Call(apply, given)
	}
}

// call runs the filter within the limits. It walks the input, writes out parts of
// it in its own notation, and accounts for the size of the result.
func (f filter) call(r *run, input any, args []any) (any, error) {
	// The published words count the input.
	if n := len(args); n < f.least || n > f.most {
		expected := fmt.Sprint(f.least + 1)
		if f.most > f.least {
			expected = fmt.Sprintf("%d..%d", f.least+1, f.most+1)
		}
		return nil, fmt.Errorf("wrong number of arguments (given %d, expected %s)", n+1, expected)
	}
	given := append([]any{input}, args...)
	for i, value := range given {
		given[i] = plain(value)
		if err := errors.Join(r.read(given[i]), r.make(size(given[i], r.limits.Text))); err != nil {
			return nil, err
		}
	}
	value, err := f.apply(r, given[0], given[1:])
	if err != nil {
		return nil, err
	}
	if text, isText := value.(string); isText && !utf8.ValidString(text) {
		return nil, errors.New("invalid byte sequence in UTF-8")
	}
	return value, r.make(size(value, r.limits.Text))
}

// argument is the nth argument, or the standard value when it is not given.
func argument(args []any, n int, standard any) any {
	if n < len(args) {
		return args[n]
	}
	return standard
}

// onText is a filter that makes a text of a text.
func onText(apply func(string) string) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) { return apply(toText(input)), nil }}
}

// white is what strip removes.
const white = " \t\n\v\f\r\x00"

var (
	lineBreak = regexp.MustCompile(`\r?\n`)
	// Scripts, comments and styles go with their content, other tags alone.
	htmlTags    = regexp.MustCompile(`(?s)<script.*?</script>|<!--.*?-->|<style.*?</style>|<.*?>`)
	htmlEscaped = regexp.MustCompile(`&amp;([a-zA-Z]+|#\d+);`)
)

var textFilters = map[string]filter{
	"date":           {1, 1, date},
	"upcase":         onText(func(s string) string { return cases.Upper(language.Und).String(s) }),
	"strip":          onText(func(s string) string { return strings.Trim(s, white) }),
	"lstrip":         onText(func(s string) string { return strings.TrimLeft(s, white) }),
	"rstrip":         onText(func(s string) string { return strings.TrimRight(s, white) }),
	"squish":         onText(func(s string) string { return strings.Join(strings.Fields(s), " ") }),
	"strip_newlines": onText(func(s string) string { return lineBreak.ReplaceAllString(s, "") }),
	"newline_to_br":  onText(func(s string) string { return lineBreak.ReplaceAllString(s, "<br />\n") }),
	"strip_html":     onText(func(s string) string { return htmlTags.ReplaceAllString(s, "") }),
	"escape":         onText(escapeHTML),
	"h":              onText(escapeHTML),
	"escape_once":    onText(func(s string) string { return htmlEscaped.ReplaceAllString(escapeHTML(s), "&$1;") }),
	"sha256": onText(func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}),
	"base64":                 encodeBase64(base64.StdEncoding),
	"base64_encode":          encodeBase64(base64.StdEncoding),
	"base64_url_safe_encode": encodeBase64(base64.URLEncoding),
	"base64_decode":          decodeBase64("base64_decode", base64.StdEncoding, false),
	"base64_url_safe_decode": decodeBase64("base64_url_safe_decode", base64.RawURLEncoding, true),
	"split":                  {1, 1, split},
	"raw":                    {apply: func(_ *run, input any, _ []any) (any, error) { return values.SafeValue{Value: input}, nil }},
	// The output of json is complete, so JSON mode does not escape it again.
	"json": {apply: func(_ *run, input any, _ []any) (any, error) {
		text, err := marshalPlain(input)
		return values.SafeValue{Value: string(text)}, err
	}},
}

// escapeHTML writes quotes as the published language does.
func escapeHTML(s string) string {
	return strings.ReplaceAll(html.EscapeString(s), "&#34;", "&quot;")
}

func encodeBase64(encoding *base64.Encoding) filter {
	return onText(func(s string) string { return encoding.EncodeToString([]byte(s)) })
}

// decodeBase64 refuses anything but exact base64: a guess would be wrong data in a
// record.
func decodeBase64(name string, encoding *base64.Encoding, trim bool) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) {
		s := toText(input)
		if trim {
			s = strings.TrimRight(s, "=")
		}
		text, err := encoding.Strict().DecodeString(s)
		if err != nil || strings.ContainsAny(s, "\r\n") {
			return nil, errors.New("invalid base64 provided to " + name)
		}
		return string(text), nil
	}}
}

// split cuts a text as the published language does: a single space matches any
// white space, and empty pieces at the end are dropped.
func split(r *run, input any, args []any) (any, error) {
	s, by := toText(input), toText(args[0])
	if err := r.take(itemCost * (1 + strings.Count(s, by))); err != nil {
		return nil, err
	}
	pieces := strings.Split(s, by)
	if by == " " {
		pieces = strings.Fields(s)
	}
	for len(pieces) > 0 && pieces[len(pieces)-1] == "" {
		pieces = pieces[:len(pieces)-1]
	}
	return list(pieces), nil
}

// list is an array of texts.
func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// toText is a value inside texts: arrays and maps as JSON.
func toText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case values.SafeValue:
		return toText(v.Value)
	case float64:
		return floatText(v)
	case values.Range:
		return fmt.Sprintf("%v..%v", v.Index(0), v.Index(v.Len()-1))
	case []any, object:
		text, _ := marshalPlain(v)
		return string(text)
	}
	return fmt.Sprint(value)
}

// shown is the text of a value in a message.
func shown(value any) string {
	if size(value, 256) > 256 {
		return "…"
	}
	return toText(value)
}

// jsonText writes a text as the content of a JSON string.
type jsonText struct{}

// WriteString implements the library's interface.
func (jsonText) WriteString(w io.Writer, text string) (int, error) {
	quoted, _ := marshalPlain(text)
	return w.Write(quoted[1 : len(quoted)-1])
}

// marshalPlain writes JSON without escaping HTML.
func marshalPlain(value any) ([]byte, error) {
	text, err := rawjson.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return text, nil
}
