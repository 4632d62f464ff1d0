package mapping

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// castNumber keeps every digit. Decimals are strings on the wire.
func castNumber(value any, fieldType string) (any, error) {
	// Databases with booleans are read into integer fields as 1 and 0, and the
	// other way round.
	if b, ok := value.(bool); ok && fieldType == api.TypeInteger {
		value = map[bool]int64{true: 1}[b]
	}
	if s, ok := value.(string); ok {
		// A plus sign is no part of a JSON number, and people write it.
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
			return nil, fmt.Errorf("%s is not a whole number", foreign.Clip(digits, 80))
		}
		// An integer has no sign of zero; a float keeps it.
		if whole == "-0" {
			whole = "0"
		}
		return json.Number(whole), nil
	}
	return castFloat(digits)
}

// castFloat refuses a number that has no separate float: an integer beyond 2^53
// that would become a neighbour, more than 17 digits, or one out of range.
func castFloat(digits string) (any, error) {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%s is out of the range of a float", foreign.Clip(digits, 80))
	}
	// Exact fractions distinguish 0.1, whose shortest float reads the same
	// again, from a number that the float only approximates.
	exact, _ := new(big.Rat).SetString(digits)
	shortest := strconv.FormatFloat(f, 'f', -1, 64)
	if back, _ := new(big.Rat).SetString(shortest); exact == nil || back.Cmp(exact) != 0 {
		return nil, fmt.Errorf("%s has more digits than a float keeps", foreign.Clip(digits, 80))
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
		return "", fmt.Errorf("%s is not a number", strconv.Quote(foreign.Clip(number, 80)))
	}
	shift := 0
	if hasExponent {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return "", fmt.Errorf("%s is not a number", strconv.Quote(foreign.Clip(number, 80)))
		}
	}
	if len(whole)+len(fraction) > longestNumber || shift > longestNumber || shift < -longestNumber {
		return "", fmt.Errorf("the number has more than %d digits", longestNumber)
	}
	if shift > 0 {
		moved := min(shift, len(fraction))
		whole += fraction[:moved] + strings.Repeat("0", shift-moved)
		fraction = fraction[moved:]
	}
	// The point moves to the left; there must be a digit before it.
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
