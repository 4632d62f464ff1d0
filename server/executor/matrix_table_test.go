package executor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// matrixTable is a matrix as it is published.
type matrixTable struct {
	file    string
	mu      sync.Mutex
	rows    map[int]string
	skipped bool
}

// add keeps the line of a cell, by its number.
func (m *matrixTable) add(i int, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[int]string{}
	}
	m.rows[i] = line
}

// finish writes the table with -update, when nothing of it is missing.
func (m *matrixTable) finish(t *testing.T, head string, cells int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !*update {
		return
	}
	if m.skipped || t.Failed() {
		t.Errorf("the matrix is not whole: run it with DESTKIT_TIER=matrix and mend what fails")
		return
	}
	var b strings.Builder
	b.WriteString(head)
	for _, i := range slices.Sorted(maps.Keys(m.rows)) {
		b.WriteString(m.rows[i] + "\n")
	}
	fmt.Fprintf(&b, "\n%d cells.\n", cells)
	require.NoError(t, os.WriteFile(filepath.Join("..", "..", "docs", m.file), []byte(b.String()), 0o644))
}

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
