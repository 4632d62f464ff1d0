package liquid

import (
	"math/big"
)

// numberFilters calculate exactly (see number).
var numberFilters = map[string]filter{
	"plus":       arithmetic('+'),
	"minus":      arithmetic('-'),
	"times":      arithmetic('*'),
	"divided_by": arithmetic('/'),
	"modulo":     arithmetic('%'),
	"abs": onNumber(func(n number) any {
		if n.fraction != nil {
			return number{fraction: new(big.Rat).Abs(n.fraction)}.asValue()
		}
		return shrink(new(big.Int).Abs(n.whole))
	}),
	"ceil":     onNumber(func(n number) any { return shrink(ceilOf(n.rat())) }),
	"floor":    onNumber(func(n number) any { return shrink(floorOf(n.rat())) }),
	"round":    {0, 1, round},
	"at_least": bound(1),
	"at_most":  bound(-1),
}

// arithmetic bounds its operands, so that a loop of multiplications ends.
func arithmetic(operator byte) filter {
	return filter{1, 1, func(_ *run, input any, args []any) (any, error) {
		a, b := toNumber(input), toNumber(args[0])
		const widest = 4 * longestNumber // bits
		for _, n := range []number{a, b} {
			if r := n.rat(); r.Num().BitLen() > widest || r.Denom().BitLen() > widest {
				return nil, errLimit
			}
		}
		return calculate(a, operator, b)
	}}
}

// onNumber is a filter of one number; what is none counts as 0.
func onNumber(apply func(number) any) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) { return apply(toNumber(input)), nil }}
}

// round: to an integer, or with places to a number that keeps its kind.
func round(_ *run, input any, args []any) (any, error) {
	n := toNumber(input)
	places, _ := toNumber(argument(args, 0, int64(0))).integer()
	// Beyond that nothing is left to round, and the powers of ten get large.
	places = min(max(places, -1000), 1000)
	if n.fraction == nil && places >= 0 {
		return shrink(n.whole), nil
	}
	rounded := roundTo(n.rat(), places)
	// An integer stays one, also rounded to tens.
	if n.fraction == nil || places <= 0 {
		return shrink(floorOf(rounded)), nil
	}
	return number{fraction: rounded}.asValue(), nil
}

// bound keeps the larger (sign 1) or the smaller (sign -1) of two numbers.
func bound(sign int) filter {
	return filter{1, 1, func(_ *run, input any, args []any) (any, error) {
		n, limit := toNumber(input), toNumber(args[0])
		if limit.rat().Cmp(n.rat()) == sign {
			n = limit
		}
		return n.asValue(), nil
	}}
}
