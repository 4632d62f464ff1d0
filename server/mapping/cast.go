package mapping

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
)

// Cast brings a value of a source row or of a template to one of the seven
// types of the wire (facts A3) in the form that JSON marshals: bool, string, or
// json.Number with every digit kept, nil for nil, and []any of these for array.
//
// Values are nil, bool, the integer and float types, *big.Int, json.Number,
// string, []byte, time.Time, []any and map[string]any. A cast that would lose
// information fails and says what: nothing is rounded, cut or guessed.
func Cast(value any, fieldType string, array bool) (any, error) {
	if value == nil {
		return nil, nil
	}
	if !array {
		return castOne(value, fieldType)
	}
	items, ok := value.([]any)
	if !ok {
		source, isText := value.(string)
		decoded, err := decodeValue([]byte(source))
		if items, ok = decoded.([]any); !isText || err != nil || !ok {
			return nil, fmt.Errorf("cast to array: %s is not an array", describe(value))
		}
	}
	out := make([]any, len(items))
	for i, item := range items {
		var err error
		if out[i], err = Cast(item, fieldType, false); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return out, nil
}

func castOne(value any, fieldType string) (any, error) {
	var out any
	var err error
	switch fieldType {
	case api.TypeString:
		out, err = castString(value)
	case api.TypeBoolean:
		out, err = castBoolean(value)
	case api.TypeInteger, api.TypeFloat, api.TypeDecimal:
		out, err = castNumber(value, fieldType)
	case api.TypeDate, api.TypeDateTime:
		out, err = castTime(value, fieldType)
	default:
		err = fmt.Errorf("unknown type %q", clip(fieldType))
	}
	if err != nil {
		return nil, fmt.Errorf("cast to %s: %w", fieldType, err)
	}
	return out, nil
}

// decodeValue reads one JSON value and keeps the digits of its numbers.
func decodeValue(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode value: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode value: more than one value")
	}
	return value, nil
}

// castString writes any value as text: times in the form of the wire, arrays
// and objects as JSON, bytes as they are when they are UTF-8 and as base64
// otherwise.
func castString(value any) (any, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("the text is not valid UTF-8")
		}
		return v, nil
	case []byte:
		if utf8.Valid(v) {
			return string(v), nil
		}
		return base64.StdEncoding.EncodeToString(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case time.Time:
		return formatMoment(v), nil
	case []any, map[string]any:
		text, err := marshalPlain(v)
		return string(text), err
	}
	digits, err := decimalText(value)
	return digits, err
}

// marshalPlain writes JSON without escaping HTML.
func marshalPlain(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// castBoolean takes true and false, their words in any case, and 1 and 0.
func castBoolean(value any) (any, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "t", "1":
			return true, nil
		case "false", "f", "0":
			return false, nil
		}
	default:
		if digits, err := decimalText(value); err == nil {
			switch digits {
			case "1":
				return true, nil
			case "0":
				return false, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is neither true nor false", describe(value))
}

// castNumber keeps every digit. Decimals are strings on the wire (facts A3).
func castNumber(value any, fieldType string) (any, error) {
	if b, ok := value.(bool); ok && fieldType == api.TypeInteger {
		value = map[bool]int64{true: 1}[b]
	}
	if s, ok := value.(string); ok {
		value = json.Number(strings.TrimPrefix(strings.TrimSpace(s), "+"))
	}
	digits, err := decimalText(value)
	if err != nil {
		return nil, err
	}
	switch fieldType {
	case api.TypeDecimal:
		return digits, nil
	case api.TypeInteger:
		whole, fraction, _ := strings.Cut(digits, ".")
		if strings.Trim(fraction, "0") != "" {
			return nil, fmt.Errorf("%s is not a whole number", clip(digits))
		}
		if whole == "-0" {
			whole = "0"
		}
		return json.Number(whole), nil
	}
	return castFloat(digits)
}

// castFloat refuses a number that has no float of its own: an integer beyond
// 2^53 that would become a neighbour, more than 17 digits, or one out of range.
func castFloat(digits string) (any, error) {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%s is out of the range of a float", clip(digits))
	}
	exact, _ := new(big.Rat).SetString(digits)
	shortest := strconv.FormatFloat(f, 'f', -1, 64)
	if back, _ := new(big.Rat).SetString(shortest); exact == nil || back.Cmp(exact) != 0 {
		return nil, fmt.Errorf("%s has more digits than a float keeps", clip(digits))
	}
	return json.Number(strconv.FormatFloat(f, floatForm(f), -1, 64)), nil
}

// floatForm writes very large and very small numbers with an exponent.
func floatForm(f float64) byte {
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		return 'e'
	}
	return 'f'
}

const longestNumber = 10_000 // digits; an exponent must not make a text without end

// decimalText is a number in plain decimal digits, without an exponent.
func decimalText(value any) (string, error) {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "", fmt.Errorf("%v is no number", v)
		}
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32), nil
	case *big.Int:
		return v.String(), nil
	case json.Number:
		return plainDigits(v.String())
	case int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), nil
	}
	return "", fmt.Errorf("%s is not a number", describe(value))
}

// plainDigits checks a number and resolves its exponent without rounding.
func plainDigits(number string) (string, error) {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(number), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", fmt.Errorf("%s is not a number", strconv.Quote(clip(number)))
	}
	shift := 0
	if hasExponent {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return "", fmt.Errorf("%s is not a number", strconv.Quote(clip(number)))
		}
	}
	if len(whole)+len(fraction) > longestNumber || shift > longestNumber || shift < -longestNumber {
		return "", fmt.Errorf("the number has more than %d digits", longestNumber)
	}
	for ; shift > 0; shift-- {
		next := "0"
		if fraction != "" {
			next, fraction = fraction[:1], fraction[1:]
		}
		whole += next
	}
	if shift < 0 {
		whole = strings.Repeat("0", max(0, 1-shift-len(whole))) + whole
		cut := len(whole) + shift
		whole, fraction = whole[:cut], whole[cut:]+fraction
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole, nil
}

// moments are the forms of time that a text may have; those without a zone are
// taken as UTC.
var moments = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04",
	time.DateOnly,
}

func parseMoment(s string) (moment time.Time, dateOnly bool, err error) {
	s = strings.TrimSpace(s)
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + strings.Replace(strings.Replace(s[11:], " UTC", "Z", 1), " ", "", 1)
	}
	for _, form := range moments {
		if moment, err = time.Parse(form, s); err == nil {
			return moment, form == time.DateOnly, nil
		}
	}
	return time.Time{}, false, fmt.Errorf("%s is not a time such as 2021-03-29T16:32:23Z", strconv.Quote(clip(s)))
}

// castTime: dates are 2021-03-29, moments are in UTC with a trailing Z (facts
// A3). A moment becomes a date only at midnight UTC.
func castTime(value any, fieldType string) (any, error) {
	var moment time.Time
	switch v := value.(type) {
	case time.Time:
		moment = v
	case string:
		var err error
		if moment, _, err = parseMoment(v); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%s is not a time", describe(value))
	}
	moment = moment.UTC()
	if moment.Year() < 0 || moment.Year() > 9999 {
		return nil, fmt.Errorf("the year %d is out of range", moment.Year())
	}
	if fieldType == api.TypeDateTime {
		return formatMoment(moment), nil
	}
	if midnight := moment.Truncate(24 * time.Hour); !midnight.Equal(moment) {
		return nil, fmt.Errorf("%s has a time of day", formatMoment(moment))
	}
	return moment.Format(time.DateOnly), nil
}

// formatMoment writes UTC with Z; a fraction only where there is one.
func formatMoment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00") }

// describe names a value in a message without repeating all of it.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(clip(v))
	case []byte:
		return fmt.Sprintf("a value of %d bytes", len(v))
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case time.Time:
		return formatMoment(v)
	}
	return clip(fmt.Sprint(value))
}
