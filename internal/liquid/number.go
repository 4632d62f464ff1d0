package liquid

import (
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// number is a value as arithmetic sees it: exact, so that 0.1 plus 0.2 is 0.3, and
// an integer or not.
type number struct {
	*big.Rat
	whole bool
}

// widest is the number of bits up to which filters calculate: a loop of
// multiplications ends.
const widest = 40_000

// The published words.
var (
	errZero    = errors.New("divided by 0")
	errInteger = errors.New("invalid integer")
)

// leadingNumber is what a text is worth: all of it with a point, or its leading
// digits.
var leadingNumber = regexp.MustCompile(`^\s*(-?\d+\.\d+\s*$|[-+]?\d+)`)

// toNumber reads any value as a number, 0 for other values.
func toNumber(value any) number {
	text := ""
	switch v := value.(type) {
	case int, float64, json.Number:
		text = toText(v)
	case string:
		text = strings.TrimSpace(leadingNumber.FindString(v[:min(len(v), widest/4)]))
	}
	r := new(big.Rat)
	if n, err := strconv.Atoi(text); err == nil {
		return number{r.SetInt64(int64(n)), true}
	}
	if strings.ContainsAny(text, "eE") { // which may mean any length
		f, _ := strconv.ParseFloat(text, 64)
		r.SetFloat64(f)
		return number{r, false}
	}
	if _, ok := r.SetString(text); ok {
		return number{r, !strings.Contains(text, ".")}
	}
	return number{new(big.Rat), true}
}

// value has its digits; fractions those of a float.
func (n number) value() any {
	if n.whole {
		return json.Number(n.RatString())
	}
	f, _ := n.Float64()
	return json.Number(floatText(f))
}

// cut is the integer towards zero, 0 where that is too long.
func (n number) cut() int {
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	if !whole.IsInt64() {
		return 0
	}
	return int(whole.Int64())
}

// floor is the largest integer that is not larger: denominators are positive, so
// that the Euclidean quotient rounds down.
func floor(r *big.Rat) *big.Rat { return new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom())) }

// ceil is the smallest integer that is not smaller.
func ceil(r *big.Rat) *big.Rat { return r.Neg(floor(new(big.Rat).Neg(r))) }

// roundTo rounds half away from zero to a number of decimal places.
func roundTo(n number, places int) number {
	places = min(max(places, -1000), 1000) // beyond that nothing is left to round
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(places, -places))), nil))
	if places < 0 {
		scale.Inv(scale)
	}
	r := new(big.Rat).Abs(n.Rat)
	r = floor(r.Add(r.Mul(r, scale), big.NewRat(1, 2)))
	if n.Sign() < 0 {
		r.Neg(r)
	}
	return number{r.Quo(r, scale), n.whole || places <= 0}
}

// calculate applies + - * / %, the last two rounding down for integers.
func calculate(operator byte, a, b number) (any, error) {
	out := number{new(big.Rat), a.whole && b.whole}
	switch operator {
	case '+':
		out.Add(a.Rat, b.Rat)
	case '-':
		out.Sub(a.Rat, b.Rat)
	case '*':
		out.Mul(a.Rat, b.Rat)
	default:
		if b.Sign() == 0 {
			return nil, errZero
		}
		quotient := new(big.Rat).Quo(a.Rat, b.Rat)
		switch {
		case operator == '%': // the remainder has the sign of the divisor
			out.Sub(a.Rat, quotient.Mul(floor(quotient), b.Rat))
		case out.whole:
			out.Rat = floor(quotient)
		default:
			out.Rat = quotient
		}
	}
	if out.Num().BitLen() > widest || out.Denom().BitLen() > widest {
		return nil, exceeded("a number of more than %d bits", widest)
	}
	return out.value(), nil
}

// toInteger takes integers and texts that are nothing but an integer.
func toInteger(value any) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(toText(value)))
	if err != nil {
		return 0, errInteger
	}
	return n, nil
}

// floatText always has a fraction, and never an exponent.
func floatText(f float64) string {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsAny(text, ".IN") {
		text += ".0"
	}
	return text
}

// numberFilters calculate exactly.
var numberFilters = map[string]filter{
	"plus":       arithmetic('+'),
	"minus":      arithmetic('-'),
	"times":      arithmetic('*'),
	"divided_by": arithmetic('/'),
	"modulo":     arithmetic('%'),
	"abs":        onNumbers(0, func(n, _ number) number { return number{new(big.Rat).Abs(n.Rat), n.whole} }),
	"ceil":       onNumbers(0, func(n, _ number) number { return number{ceil(n.Rat), true} }),
	"floor":      onNumbers(0, func(n, _ number) number { return number{floor(n.Rat), true} }),
	"round":      {0, 1, onNumbers(1, func(n, places number) number { return roundTo(n, places.cut()) }).apply},
	"at_least":   onNumbers(1, func(n, limit number) number { return []number{n, limit}[max(0, limit.Cmp(n.Rat))] }),
	"at_most":    onNumbers(1, func(n, limit number) number { return []number{n, limit}[max(0, n.Cmp(limit.Rat))] }),
}

func arithmetic(operator byte) filter {
	return filter{1, 1, func(_ *run, input any, args []any) (any, error) {
		return calculate(operator, toNumber(input), toNumber(args[0]))
	}}
}

// onNumbers is a filter of a number and perhaps another one.
func onNumbers(arguments int, apply func(n, other number) number) filter {
	return filter{arguments, arguments, func(_ *run, input any, args []any) (any, error) {
		return apply(toNumber(input), toNumber(argument(args, 0, 0))).value(), nil
	}}
}
