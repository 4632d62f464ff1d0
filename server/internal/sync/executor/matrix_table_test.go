package executor

import (
	"flag"
	"fmt"
)

var update = flag.Bool("update", false, "write docs/evidence/crash-matrix.md, docs/evidence/disk-matrix.md and docs/evidence/fault-matrix.md")

func ordinal(n int64) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprint(n, suffix)
}
