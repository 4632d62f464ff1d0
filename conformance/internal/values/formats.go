package values

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Format makes a valid value of a known kind from a number and its short code.
type Format func(n uint32, code string) string

// textFormat is the format of values that endpoints validate.
type textFormat struct {
	words []string
	make  Format   // nil of the zero value, which is no format
	vary  []Format // other good values of the kind, of which some endpoints change a part
}

// formats are recognised by the words in the name or the label of a string field.
var formats = []textFormat{
	{[]string{"email", "mail"}, as("conf.%[2]s@example.com"), []Format{
		func(_ uint32, code string) string { return "Conf." + strings.ToUpper(code) + "+Tag@example.com" },
		as("o'conf_%[2]s@mail.example.co.uk"),
		func(_ uint32, code string) string {
			return "c" + code + strings.Repeat("x", 63-len(code)) + "@example.com"
		},
	}},
	{[]string{"phone", "mobile", "tel", "telephone", "fax", "cell"}, as("+4915%09[1]d"), []Format{as("+49 (15) %09[1]d"), as("004915%09[1]d")}},
	{[]string{"url", "uri", "website", "homepage", "link", "webpage", "href"}, as("https://example.com/%[2]s"), []Format{
		as("https://example.com/Path/%[2]s?q=a%%20b&c=d+e#Part"), as("http://example.com:8080/%[2]s/../x/"), as("https://%[2]s.example.com"),
	}},
	{[]string{"domain", "hostname", "host"}, as("c%[2]s.example.com"), nil},
	{[]string{"uuid", "guid"}, as("%08[1]x-0000-4000-8000-%012[1]x"), nil},
	{[]string{"country", "nation"}, from("DE", "FR", "US", "GB", "JP", "BR", "IN", "ZA"), nil},
	{[]string{"currency"}, from("EUR", "USD", "GBP", "JPY", "CHF", "BRL", "INR", "ZAR"), nil},
	{[]string{"locale", "language", "lang"}, from("en", "de", "fr", "ja", "pt", "hi", "es", "it"), nil},
	{[]string{"timezone", "tz"}, from("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"), nil},
	{[]string{"postcode", "postal", "zip", "zipcode", "postalcode", "plz"}, func(n uint32, _ string) string { return fmt.Sprintf("%05d", 10000+n%90000) }, nil},
	{[]string{"color", "colour"}, func(n uint32, _ string) string { return fmt.Sprintf("#%06x", n&0xffffff) }, nil},
	{[]string{"ip", "ipaddress"}, func(n uint32, _ string) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }, nil},
	{[]string{"gender", "sex"}, from("female", "male"), nil},
}

// as writes a number and its short code into a text.
func as(text string) Format {
	return func(n uint32, code string) string { return fmt.Sprintf(text, n, code) }
}

// from cycles through a list of codes.
func from(codes ...string) Format {
	return func(n uint32, _ string) string { return codes[int(n)%len(codes)] }
}

// Guessed is the format of a string field, nil for a text such as an "email subject".
func Guessed(f rpc.Field) Format { return formatOf(f).make }

// formatOf is the format of a field.
func formatOf(f rpc.Field) textFormat {
	for _, name := range []string{f.APIName, f.Label} {
		said := Words(name)
		if len(said) > 1 && oneOf(said, "name", "title", "text", "note", "notes", "subject", "body", "description") {
			continue
		}
		if format := formatIn(said); format.make != nil {
			return format
		}
	}
	return textFormat{}
}

// formatIn is the format that one of the words names.
func formatIn(said []string) textFormat {
	for _, format := range formats {
		if oneOf(said, format.words...) {
			return format
		}
	}
	return textFormat{}
}

func oneOf(said []string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(said, w) })
}

// camel is where a word ends within a name such as postCode.
var camel = regexp.MustCompile(`([\p{Ll}\p{Nd}])(\p{Lu})`)

// Words takes a field name such as "billing_postCode" or "E-Mail" apart.
func Words(name string) []string {
	parts := strings.FieldsFunc(camel.ReplaceAllString(name, "$1 $2"), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	out := lists.Of(parts, strings.ToLower)
	for i := 1; i < len(parts); i++ { // post code, zip code, e mail, time zone
		out = append(out, out[i-1]+out[i])
	}
	return out
}

// emailKey reports whether string identifiers of the field look like addresses.
func emailKey(f rpc.Field) bool {
	return oneOf(Words(f.APIName), "email", "mail", "emailaddress")
}

// Varied are further values of the format of a field, nil for a text without one.
func (v Maker) Varied(f rpc.Field, s Seed) []json.RawMessage {
	return lists.Of(formatOf(f).vary, func(format Format) json.RawMessage { return v.Formatted(format, s) })
}

// FormatIn is the format that a message requires, nil when it names none.
func FormatIn(message string) Format { return formatIn(Words(message)).make }
