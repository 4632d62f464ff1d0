package source

import "context"

// Sorted reads all rows and hands them out in ascending order of some of their
// cells, given by their places, each compared by its bytes; of equal ones the
// earlier row stays first. What does not fit into a few megabytes goes to a
// nameless file in scratch; "" is the system's folder for temporary files. It
// closes rows, also when it fails.
func Sorted(ctx context.Context, rows Rows, order []int, scratch string) (Rows, error) {
	return sortRows(ctx, rows, order, scratch)
}
