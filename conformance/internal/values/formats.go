package values

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/destkit/destkit/destsim/rpc"
)

// Format makes a valid value of a known kind from a number and its short code.
type Format func(n uint32, code string) string

// formats are recognised by the words in the name or the label of a string
// field: many endpoints validate these, and a made-up text would be refused.
var formats = []struct {
	words []string
	make  Format
	vary  []Format // other good values of the kind, of which some endpoints change a part
}{
	{[]string{"email", "mail"}, func(_ uint32, code string) string { return "conf." + code + "@example.com" }, []Format{
		func(_ uint32, code string) string { return "Conf." + strings.ToUpper(code) + "+Tag@example.com" },
		func(_ uint32, code string) string { return "o'conf_" + code + "@mail.example.co.uk" },
		func(_ uint32, code string) string {
			return "c" + code + strings.Repeat("x", 63-len(code)) + "@example.com"
		},
	}},
	{[]string{"phone", "mobile", "tel", "telephone", "fax", "cell"}, func(n uint32, _ string) string { return fmt.Sprintf("+4915%09d", n) }, []Format{
		func(n uint32, _ string) string { return fmt.Sprintf("+49 (15) %09d", n) },
		func(n uint32, _ string) string { return fmt.Sprintf("004915%09d", n) },
	}},
	{[]string{"url", "uri", "website", "homepage", "link", "webpage", "href"}, func(_ uint32, code string) string { return "https://example.com/" + code }, []Format{
		func(_ uint32, code string) string { return "https://example.com/Path/" + code + "?q=a%20b&c=d+e#Part" },
		func(_ uint32, code string) string { return "http://example.com:8080/" + code + "/../x/" },
		func(_ uint32, code string) string { return "https://" + code + ".example.com" },
	}},
	{[]string{"domain", "hostname", "host"}, func(_ uint32, code string) string { return "c" + code + ".example.com" }, nil},
	{[]string{"uuid", "guid"}, func(n uint32, _ string) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n) }, nil},
	{[]string{"country", "nation"}, from("DE", "FR", "US", "GB", "JP", "BR", "IN", "ZA"), nil},
	{[]string{"currency"}, from("EUR", "USD", "GBP", "JPY", "CHF", "BRL", "INR", "ZAR"), nil},
	{[]string{"locale", "language", "lang"}, from("en", "de", "fr", "ja", "pt", "hi", "es", "it"), nil},
	{[]string{"timezone", "tz"}, from("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"), nil},
	{[]string{"postcode", "postal", "zip", "zipcode", "postalcode", "plz"}, func(n uint32, _ string) string { return fmt.Sprintf("%05d", 10000+n%90000) }, nil},
	{[]string{"color", "colour"}, func(n uint32, _ string) string { return fmt.Sprintf("#%06x", n&0xffffff) }, nil},
	{[]string{"ip", "ipaddress"}, func(n uint32, _ string) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }, nil},
	{[]string{"gender", "sex"}, from("female", "male"), nil},
}

// from cycles through a list of codes.
func from(codes ...string) Format {
	return func(n uint32, _ string) string { return codes[int(n)%len(codes)] }
}

// Guessed is the format of a string field by its name and label, nil for a text
// without one. A "country name" or an "email subject" is a text.
func Guessed(f rpc.Field) Format {
	if i := kindOfText(f); i >= 0 {
		return formats[i].make
	}
	return nil
}

// kindOfText is the place of the format of a field, -1 when it has none.
func kindOfText(f rpc.Field) int {
	for _, name := range []string{f.APIName, f.Label} {
		said := Words(name)
		if len(said) > 1 && slices.ContainsFunc([]string{"name", "title", "text", "note", "notes", "subject", "body", "description"}, func(w string) bool { return slices.Contains(said, w) }) {
			continue
		}
		for i, k := range formats {
			if slices.ContainsFunc(k.words, func(w string) bool { return slices.Contains(said, w) }) {
				return i
			}
		}
	}
	return -1
}

// Words takes a field name such as "billing_postCode" or "E-Mail" apart.
func Words(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out, word = append(out, strings.ToLower(string(word))), nil
		}
	}
	lower := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
			lower = false
			continue
		case unicode.IsUpper(c) && lower:
			flush()
		}
		lower = unicode.IsLower(c) || unicode.IsDigit(c)
		word = append(word, c)
	}
	flush()
	single := len(out)
	for i := 0; i+1 < single; i++ { // post code, zip code, e mail, time zone
		out = append(out, out[i]+out[i+1])
	}
	return out
}

// emailKey reports whether string identifiers of the field look like addresses.
func emailKey(f rpc.Field) bool {
	return slices.ContainsFunc(Words(f.APIName), func(w string) bool { return w == "email" || w == "mail" || w == "emailaddress" })
}

// Varied are further values of the format of a field, nil for a text without one.
func (v Maker) Varied(f rpc.Field, s Seed) []json.RawMessage {
	i := kindOfText(f)
	if i < 0 {
		return nil
	}
	var out []json.RawMessage
	for _, format := range formats[i].vary {
		out = append(out, v.Formatted(format, s))
	}
	return out
}

// FormatIn is the format that a message asks for, nil when it names none.
func FormatIn(message string) Format {
	said := Words(message)
	for _, k := range formats {
		if slices.ContainsFunc(k.words, func(w string) bool { return slices.Contains(said, w) }) {
			return k.make
		}
	}
	return nil
}
