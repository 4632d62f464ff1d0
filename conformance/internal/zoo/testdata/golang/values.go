package golang

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var (
	decimalForm  = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
	dateForm     = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	dateTimeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
)

// unfit says why a value does not fit its field, "" when it does.
func unfit(f field, v any) string {
	if v == nil {
		if f.Required {
			return f.Name + " is required"
		}
		return ""
	}
	if f.Array {
		items, ok := v.([]any)
		if !ok {
			return f.Name + " must be an array"
		}
		f.Array, f.Required = false, true
		for _, item := range items {
			if why := unfit(f, item); why != "" {
				return why
			}
		}
		return ""
	}
	if !fits(f.Type, v) {
		return fmt.Sprintf("%s is no valid %s", f.Name, f.Type)
	}
	return ""
}

func fits(kind string, v any) bool {
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch kind {
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "integer":
		if _, ok := v.(float64); ok {
			return true
		}
		_, err := strconv.ParseInt(string(number), 10, 64)
		return isNumber && err == nil
	case "float":
		if _, ok := v.(float64); ok {
			return true
		}
		_, err := number.Float64()
		return isNumber && err == nil
	case "decimal":
		return isText && decimalForm.MatchString(text)
	case "date":
		return isText && dateForm.MatchString(text)
	case "date_time":
		return isText && dateTimeForm.MatchString(text)
	default:
		// encoding/json has put U+FFFD where half a surrogate pair was.
		return isText && !strings.ContainsRune(text, unicode.ReplacementChar)
	}
}

// kept is what is stored of a value that fits.
func (e *endpoint) kept(f field, v any) any {
	if v == nil {
		if e.wrong("zero-values-for-null") {
			return zero(f)
		}
		return nil
	}
	if f.Array {
		if items := v.([]any); len(items) == 0 && e.wrong("empty-array-is-null") {
			return nil
		}
		return v
	}
	switch f.Type {
	case "string":
		return e.keptText(f, v.(string))
	case "integer":
		if n, ok := v.(json.Number); ok && e.wrong("integers-of-32-bits") && !f.Identifier {
			whole, _ := n.Int64()
			return json.Number(strconv.FormatInt(int64(int32(whole)), 10))
		}
	case "float":
		if n, ok := v.(json.Number); ok && e.wrong("floats-of-32-bits") {
			wide, _ := n.Float64()
			if narrow := float32(wide); !math.IsInf(float64(narrow), 0) {
				return json.Number(strconv.FormatFloat(float64(narrow), 'g', -1, 32))
			}
		}
	case "date":
		if e.wrong("dates-as-moments") {
			day, _ := time.Parse(time.DateOnly, v.(string))
			return day.Format(time.RFC3339)
		}
	}
	return v
}

func (e *endpoint) keptText(f field, text string) any {
	if f.Identifier {
		return text
	}
	switch {
	case e.wrong("cut-in-a-character") && len(text) > 255:
		return strings.ToValidUTF8(text[:255], "\uFFFD")
	case e.wrong("unprintable-dropped"):
		return strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, text)
	case e.wrong("cut-at-nul"):
		before, _, _ := strings.Cut(text, "\x00")
		return before
	case e.wrong("empty-text-is-null") && text == "":
		return nil
	case e.wrong("typed-like-a-spreadsheet"):
		return asTyped(text)
	}
	return text
}

// asTyped is what a spreadsheet makes of a text that is typed into a cell.
func asTyped(text string) any {
	if _, err := strconv.ParseFloat(text, 64); err == nil && decimalForm.MatchString(text) {
		whole := strings.TrimLeft(text, "0")
		if whole == "" || strings.HasPrefix(whole, ".") {
			whole = "0" + whole
		}
		return whole
	}
	if upper := strings.ToUpper(text); upper == "TRUE" || upper == "FALSE" {
		return upper
	}
	if strings.HasPrefix(text, "=") {
		return "#ERROR!"
	}
	return strings.TrimPrefix(text, "'")
}

// zero is the zero value of the Go type that a field has in a struct.
func zero(f field) any {
	switch {
	case f.Array:
		return []any{}
	case f.Type == "boolean":
		return false
	case f.Type == "integer", f.Type == "float":
		return json.Number("0")
	case f.Type == "decimal":
		return "0"
	case f.Type == "date":
		return "0001-01-01"
	case f.Type == "date_time":
		return "0001-01-01T00:00:00Z"
	default:
		return ""
	}
}
