package xk6

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"strings"

	"github.com/destkit/destkit/loadgen"
)

// Integer identifiers without a keyRange lie between 2·10^12 and 3·10^12, as
// those of destkit load do: slots of 10^9, of which a run takes one.
const (
	firstInteger = 2_000_000_000_000
	slotSize     = 1_000_000_000
	slots        = 1000
)

// part is what one instance of a distributed run does: from a share to a share of
// the whole, 0 to 1. k6 gives it as an execution segment, 1/3:2/3.
type part struct{ from, to *big.Rat }

func newPart(segment string) (part, error) {
	from, to, ok := strings.Cut(segment, ":")
	p := part{new(big.Rat), new(big.Rat)}
	if _, good := p.from.SetString(from); !ok || !good {
		return p, fmt.Errorf("the execution segment %q is not FROM:TO", segment)
	}
	if _, good := p.to.SetString(to); !good || p.from.Cmp(p.to) >= 0 {
		return p, fmt.Errorf("the execution segment %q is not FROM:TO", segment)
	}
	return p, nil
}

// of divides n things: those from first on, up to but not including end, are of
// this part. Parts that do not overlap never share one.
func (p part) of(n int64) (first, end int64) {
	scale := func(share *big.Rat) int64 {
		x := new(big.Rat).Mul(share, new(big.Rat).SetInt64(n))
		return new(big.Int).Quo(x.Num(), x.Denom()).Int64()
	}
	return scale(p.from), scale(p.to)
}

// forPart gives the options of one instance: its run, its keys and its share of
// the records that may be written, so that neither instances nor destinations of
// one instance write the same key.
func (s *shared) forPart(segment string) (loadgen.Options, error) {
	o := s.config.options
	p, err := newPart(segment)
	if err != nil {
		return o, err
	}
	first, end := p.of(slots)
	if first == end {
		return o, fmt.Errorf("the execution segment %s is smaller than a thousandth: an instance has no keys then", segment)
	}
	if s.config.ranged() {
		from, to := p.of(o.KeyTo - o.KeyFrom + 1)
		if from == to {
			return o, fmt.Errorf("keyRange: %d to %d are too few keys for the execution segment %s", o.KeyFrom, o.KeyTo, segment)
		}
		o.KeyFrom, o.KeyTo = o.KeyFrom+from, o.KeyFrom+to-1
	} else {
		h := fnv.New32a()
		_, _ = h.Write([]byte(o.RunID))
		slot, ok := s.module.slot(int64(h.Sum32()), first, end)
		if !ok {
			return o, fmt.Errorf("there are more than %d destinations: make one outside of the functions, with the same options in every VU", end-first)
		}
		o.KeyFrom = firstInteger + slot*slotSize
		o.KeyTo = o.KeyFrom + slotSize - 1
	}
	if end-first < slots {
		o.RunID += fmt.Sprintf("-i%03d", first)
	}
	if s.number > 0 {
		o.RunID += fmt.Sprintf("-d%d", s.number+1)
	}
	if o.MaxRecords > 0 {
		from, to := p.of(o.MaxRecords)
		if o.MaxRecords = to - from; o.MaxRecords == 0 {
			return o, fmt.Errorf("maxRecords leaves nothing for the execution segment %s", segment)
		}
	}
	if o.Seed != 0 {
		// The same seed must not make the same ids of requests on two machines.
		o.Seed += uint64(first)<<32 + uint64(s.number)<<42
	}
	return o, nil
}
