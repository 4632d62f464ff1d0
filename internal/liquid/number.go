package liquid

import (
	"errors"
	"math"
	"math/big"
	"strings"
)

// number is a value as arithmetic sees it: an integer, or an exact fraction
// where a decimal point was involved, so that 0.1 plus 0.2 is 0.3.
type number struct {
	whole    *big.Int
	fraction *big.Rat // nil: an integer
}

// longestNumber is in digits: longer ones must not take time without end.
const longestNumber = 10_000

// wholeNumber is a small integer.
func wholeNumber(n int64) number { return number{whole: big.NewInt(n)} }

// exactNumber is a number without any loss; ok is false for what is none.
func exactNumber(value any) (*big.Rat, bool) {
	switch v := value.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case *big.Int:
		return new(big.Rat).SetInt(v), true
	case float64:
		r := new(big.Rat).SetFloat64(v)
		return r, r != nil
	case decimal:
		return new(big.Rat).SetString(string(v))
	}
	return nil, false
}

// toNumber reads any value as a number: texts by their leading digits, others
// as 0.
func toNumber(value any) number {
	switch v := value.(type) {
	case int64:
		return wholeNumber(v)
	case *big.Int:
		return number{whole: v}
	case float64:
		if r, ok := new(big.Rat).SetString(floatText(v)); ok {
			return number{fraction: r}
		}
	case decimal:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return number{fraction: r}
		}
	case string:
		return textNumber(v)
	}
	return wholeNumber(0)
}

// textNumber is exact for a text that is nothing but a decimal, and reads
// leading digits otherwise.
func textNumber(s string) number {
	trimmed := strings.TrimFunc(s, isUnicodeSpace)
	if n := len(trimmed); n > 0 && n < longestNumber && numberLength(trimmed) == n && strings.Contains(trimmed, ".") {
		r, _ := new(big.Rat).SetString(trimmed)
		return number{fraction: r}
	}
	return number{whole: leadingInteger(s)}
}

// leadingInteger reads digits at the start of a text, 0 for none. Single
// underscores may stand between digits.
func leadingInteger(s string) *big.Int {
	s = strings.TrimLeftFunc(s, isUnicodeSpace)
	digits := make([]byte, 0, len(s))
	if s != "" && (s[0] == '-' || s[0] == '+') {
		digits = append(digits, s[0])
		s = s[1:]
	}
	for i := 0; i < len(s) && i < longestNumber; i++ {
		if s[i] == '_' && i > 0 && s[i-1] != '_' {
			continue
		}
		if !isDigit(s[i]) {
			break
		}
		digits = append(digits, s[i])
	}
	n, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

// rat is the number as a fraction, for calculations that may leave the
// integers.
func (n number) rat() *big.Rat {
	if n.fraction != nil {
		return n.fraction
	}
	return new(big.Rat).SetInt(n.whole)
}

// integer cuts towards zero; ok is false when it does not fit 64 bits.
func (n number) integer() (int64, bool) {
	whole := n.whole
	if n.fraction != nil {
		whole = new(big.Int).Quo(n.fraction.Num(), n.fraction.Denom())
	}
	return whole.Int64(), whole.IsInt64()
}

// asValue gives integers back as they are and fractions as floats.
func (n number) asValue() any {
	if n.fraction == nil {
		return shrink(n.whole)
	}
	f, _ := n.fraction.Float64()
	return f
}

// The published words.
var errZero = errors.New("divided by 0")

// calculate applies + - * / %, the last two rounding down for integers.
func calculate(a number, operator byte, b number) (any, error) {
	if (operator == '/' || operator == '%') && b.rat().Sign() == 0 {
		if operator == '/' && (a.fraction != nil || b.fraction != nil) {
			return overZero(a.rat().Sign()), nil
		}
		return nil, errZero
	}
	if a.fraction == nil && b.fraction == nil {
		return shrink(calculateWhole(a.whole, operator, b.whole)), nil
	}
	x, y, out := a.rat(), b.rat(), new(big.Rat)
	switch operator {
	case '+':
		out.Add(x, y)
	case '-':
		out.Sub(x, y)
	case '*':
		out.Mul(x, y)
	case '/':
		out.Quo(x, y)
	default:
		// The remainder has the sign of the divisor.
		times := new(big.Rat).SetInt(floorOf(out.Quo(x, y)))
		out = new(big.Rat).Sub(x, times.Mul(times, y))
	}
	if out.Sign() == 0 && (operator == '*' || operator == '/') && (a.rat().Sign() < 0) != (b.rat().Sign() < 0) {
		return math.Copysign(0, -1), nil // decimals keep the sign of a zero
	}
	return number{fraction: out}.asValue(), nil
}

// overZero is what decimals give: an infinity, or no number for 0 over 0.
func overZero(sign int) float64 {
	if sign == 0 {
		return math.NaN()
	}
	return math.Inf(sign)
}

// calculateWhole stays within the integers.
func calculateWhole(a *big.Int, operator byte, b *big.Int) *big.Int {
	out := new(big.Int)
	switch operator {
	case '+':
		return out.Add(a, b)
	case '-':
		return out.Sub(a, b)
	case '*':
		return out.Mul(a, b)
	}
	quotient := floorOf(new(big.Rat).SetFrac(a, b))
	if operator == '/' {
		return quotient
	}
	return out.Sub(a, quotient.Mul(quotient, b))
}

// floorOf is the largest integer that is not larger.
func floorOf(r *big.Rat) *big.Int {
	// Denominators are positive, so the Euclidean quotient rounds down.
	return new(big.Int).Div(r.Num(), r.Denom())
}

// ceilOf is the smallest integer that is not smaller.
func ceilOf(r *big.Rat) *big.Int {
	down := floorOf(new(big.Rat).Neg(r))
	return down.Neg(down)
}

// roundTo rounds half away from zero to a number of decimal places.
func roundTo(r *big.Rat, places int64) *big.Rat {
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(math.Abs(float64(places)))), nil))
	if places < 0 {
		scale.Inv(scale)
	}
	scaled := new(big.Rat).Mul(r, scale)
	half := big.NewRat(1, 2)
	var whole *big.Int
	if scaled.Sign() < 0 {
		whole = ceilOf(scaled.Sub(scaled, half))
	} else {
		whole = floorOf(scaled.Add(scaled, half))
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(whole), scale)
}

// toInteger takes integers and texts that are nothing but an integer.
func toInteger(value any) (int64, error) {
	switch v := value.(type) {
	case int64:
		return v, nil
	case string:
		trimmed := strings.TrimPrefix(strings.TrimFunc(v, isUnicodeSpace), "+")
		if n, ok := new(big.Int).SetString(trimmed, 10); ok && len(trimmed) < 20 && n.IsInt64() {
			return n.Int64(), nil
		}
	}
	return 0, errors.New("invalid integer")
}
