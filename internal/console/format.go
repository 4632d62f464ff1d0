package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// functions are those that every page has.
var functions = template.FuncMap{
	"when": when, "ms": milliseconds, "num": number, "bytes": byteCount, "pretty": pretty, "tone": tone,
	"short": short, "text": text, "plural": plural, "dict": dict, "list": func(items ...any) []any { return items },
	"join": strings.Join, "lower": strings.ToLower, "has": strings.Contains,
}

// text is a value as people read it; nil is empty.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.RawMessage:
		return string(v)
	case fmt.Stringer:
		if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
			return ""
		}
		return v.String()
	}
	p := reflect.ValueOf(v)
	if p.Kind() == reflect.Pointer {
		if p.IsNil() {
			return ""
		}
		return text(p.Elem().Interface())
	}
	return fmt.Sprint(v)
}

// moment finds the time in what JSON types hold it.
func moment(v any) (t time.Time) {
	switch v := v.(type) {
	case time.Time:
		return v
	case *time.Time:
		if v != nil {
			return *v
		}
	case nil:
	default:
		p := reflect.ValueOf(v)
		for p.Kind() == reflect.Pointer && !p.IsNil() {
			p = p.Elem()
		}
		if p.Kind() == reflect.Struct && p.NumField() > 0 {
			if found, ok := p.Field(0).Interface().(time.Time); ok {
				return found
			}
		}
	}
	return t
}

// when is a moment in UTC; the script adds how long ago that was.
func when(v any) template.HTML {
	t := moment(v)
	if t.IsZero() {
		return `<span class="soft">–</span>`
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format("2006-01-02T15:04:05.000Z") + `">` + t.Format("2006-01-02 15:04:05") + `</time>`) // digits only
}

// milliseconds is a duration given in them.
func milliseconds(v any) string {
	f, ok := v.(float64)
	if d, is := v.(time.Duration); is {
		f, ok = float64(d)/float64(time.Millisecond), true
	}
	switch {
	case !ok:
		return text(v)
	case f >= 10_000:
		return strconv.FormatFloat(f/1000, 'f', 1, 64) + " s"
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " ms"
}

// number is a count with commas; a missing one is a dash.
func number(v any) string {
	digits := text(v)
	if digits == "" {
		return "–"
	}
	if f, ok := v.(float64); ok {
		digits = strconv.FormatFloat(f, 'f', 0, 64)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return digits
	}
	return quantity.Grouped(n)
}

func byteCount(v any) string {
	n, err := strconv.ParseFloat(text(v), 64)
	switch {
	case err != nil:
		return text(v)
	case n >= 10<<20:
		return strconv.FormatFloat(n/(1<<20), 'f', 0, 64) + " MiB"
	case n >= 10<<10:
		return strconv.FormatFloat(n/(1<<10), 'f', 0, 64) + " KiB"
	}
	return strconv.FormatFloat(n, 'f', 0, 64) + " bytes"
}

// longestPretty bounds indented text in bytes: a page stays readable.
const longestPretty = 128 << 10

// pretty is JSON with one member on a line, and text that is none as it is.
func pretty(v any) string {
	raw := []byte(text(v))
	if _, isText := v.(string); !isText {
		if _, isRaw := v.(json.RawMessage); !isRaw {
			out, err := json.Marshal(v)
			if err != nil {
				return text(v)
			}
			raw = out
		}
	}
	if len(raw) > longestPretty {
		return strings.ToValidUTF8(string(raw[:longestPretty]), "") + fmt.Sprintf("\n… %d bytes more", len(raw)-longestPretty)
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// tone is the colour of a state or of a status.
func tone(v any) string {
	word := strings.ToLower(text(v))
	if code, err := strconv.Atoi(word); err == nil {
		switch {
		case code >= 200 && code < 400:
			return "good"
		case code == 429:
			return "warn"
		}
		return "bad"
	}
	switch word {
	case "completed", "up to date", "up_to_date", "succeeded", "ok", "success", "sent", "delivered", "true", "armed":
		return "good"
	case "failed", "failing", "rejected", "error", "invalid", "refuse", "lost":
		return "bad"
	case "working", "queued", "running", "create", "change":
		return "open"
	case "skipped", "in doubt", "paused", "delete", "deleted", "pending", "throttled":
		return "warn"
	}
	return "none"
}

// short cuts a text for a cell of a table.
func short(most int, v any) string { return foreign.Clip(text(v), most) }

// plural is a count with its noun.
func plural(n any, one, many string) string {
	if text(n) == "1" {
		return "1 " + one
	}
	return number(n) + " " + many
}

// dict hands several values to a shared template.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d values are no pairs", len(pairs))
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[text(pairs[i])] = pairs[i+1]
	}
	return m, nil
}
