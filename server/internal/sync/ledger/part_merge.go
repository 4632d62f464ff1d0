package ledger

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// gather opens the logs of all parts and keeps them from being written; release
// lets go of them.
func (r *Run) gather() (release func(), err error) {
	var held []*Run
	release = func() {
		for _, p := range held {
			p.mu.Unlock()
		}
	}
	for i := range r.parts {
		p, err := r.openPart(i)
		if err != nil {
			return release, err
		}
		p.mu.Lock()
		held = append(held, p)
		if p.failed != nil {
			return release, p.failed
		}
	}
	return release, nil
}

// learnt is what the logs of a run have, in the order of their keys.
func (r *Run) learnt() learnt {
	all := learnt{{r.index}}
	if len(r.parts) == 0 {
		return all
	}
	all = append(all, nil)
	for _, p := range r.parts {
		all[1] = append(all[1], p.index)
	}
	return all
}

// learnt are indexes: rows of them, each in ascending order without overlap.
type learnt [][]*index

func (l learnt) empty() bool {
	for _, row := range l {
		for _, x := range row {
			if !x.empty() {
				return false
			}
		}
	}
	return true
}

func (l learnt) sorted() items {
	var all []items
	for _, row := range l {
		one := &chain{}
		for _, x := range row {
			one.rest = append(one.rest, x.sorted())
		}
		all = append(all, one)
	}
	return mergeItems(all)
}

// chain is several items, one after another.
type chain struct{ rest []items }

func (c *chain) next(it *item) error {
	for len(c.rest) > 0 {
		err := c.rest[0].next(it)
		if !errors.Is(err, io.EOF) {
			return err
		}
		c.rest, it.key = c.rest[1:], nil
	}
	return io.EOF
}

// partFiles lists the parts of a run that have a file with this suffix, in
// ascending order.
func (f *folder) partFiles(run int64, suffix string) ([]int, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		number, ours := strings.CutPrefix(name, runPrefix+strconv.FormatInt(run, 10)+partInfix)
		number, wanted := strings.CutSuffix(number, suffix)
		if n, err := strconv.Atoi(number); ours && wanted && err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// dropParts deletes files of the parts of a run.
func (s *Sync) dropParts(from *folder, run int64, suffixes ...string) error {
	for _, suffix := range suffixes {
		numbers, err := from.partFiles(run, suffix)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			if err := from.remove(partName(run, n, suffix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// under is the same folder, written under a fence.
func (f *folder) under(fence int64) *folder {
	if f.shelf == nil {
		return f
	}
	own := *f.shelf
	own.fence = fence
	return &folder{shelf: &own, room: f.room, fault: f.fault, still: f.still}
}
