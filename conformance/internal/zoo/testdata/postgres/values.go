package postgres

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	isDecimal = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
	isDate    = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	isMoment  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
)

// problem is why a value does not fit its field; "" when it does.
func problem(f field, v any) string {
	if v == nil {
		if f.Required {
			return f.Name + " is required"
		}
		return ""
	}
	if f.Array {
		items, ok := v.([]any)
		for _, item := range items {
			_, isText := item.(string)
			ok = ok && isText
		}
		if !ok {
			return f.Name + " must be a list of texts"
		}
		return ""
	}
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	fits := false
	switch f.Type {
	case "string":
		fits = isText && !strings.ContainsRune(text, '\uFFFD') // half a surrogate pair
	case "decimal":
		fits = isText && isDecimal.MatchString(text)
	case "date":
		fits = isText && isDate.MatchString(text)
	case "date_time":
		fits = isText && isMoment.MatchString(text)
	case "boolean":
		_, fits = v.(bool)
	case "integer":
		_, err := strconv.ParseInt(number.String(), 10, 64)
		fits = isNumber && err == nil
	case "float":
		_, err := number.Float64()
		fits = isNumber && err == nil
	}
	if !fits {
		return f.Name + " is not a " + f.Type
	}
	return ""
}

// argument is what the driver gets: a text for everything but lists.
func (e *endpoint) argument(f field, v any) any {
	if v == nil {
		return nil
	}
	if items, ok := v.([]any); ok {
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = item.(string)
		}
		if e.wrong("array-literal-by-hand") {
			return "{" + strings.Join(texts, ",") + "}"
		}
		return texts
	}
	text := fmt.Sprint(v)
	if f.Type == "date" && e.wrong("dates-a-day-early") {
		// midnight in UTC is the evening before in the zone of the office
		office, err := time.LoadLocation("America/New_York")
		day, failed := time.Parse(time.DateOnly, text)
		if err == nil && failed == nil {
			return day.In(office).Format(time.DateOnly)
		}
	}
	return text
}

// placeholder is the parameter of a field in a statement.
func (e *endpoint) placeholder(f field, n int) string {
	if f.Name == "bio" && e.wrong("varchar-120") {
		return fmt.Sprintf("$%d::varchar(120)", n)
	}
	return fmt.Sprintf("$%d", n)
}

// shown is the expression that the read-back selects.
func shown(f field) string {
	switch {
	case f.Array:
		return fmt.Sprintf("to_json(%s)::text", f.Name)
	case f.Type == "date_time":
		return fmt.Sprintf(`to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`, f.Name)
	case f.Type == "boolean":
		return fmt.Sprintf("to_json(%s)::text", f.Name)
	}
	return f.Name + "::text"
}

// decoded is a shown text as the value that it is.
func decoded(f field, text *string) any {
	switch {
	case text == nil:
		return nil
	case f.Array, f.Type == "boolean", f.Type == "integer", f.Type == "float":
		return json.RawMessage(*text)
	}
	return *text
}
