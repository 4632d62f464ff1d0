package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/serve"
)

// TestLimitsPage holds each row of the page against the code: the default is the
// value of the constant, the message and the flag occur, the test exists.
func TestLimitsPage(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "limits.md"))
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 || strings.Contains(line, "---") || strings.Contains(line, "| constant |") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows++
		file, name, found := strings.Cut(cells[5], " ")
		require.True(t, found, line)
		require.Equal(t, limitValue(t, cells[2]), constantOf(t, filepath.Join(root, file), name), line)
		if flag := strings.Trim(cells[3], "`"); flag != "" {
			name := strings.TrimPrefix(flag, "--")
			require.True(t, serve.New().Flags().Lookup(name) != nil || newProxy().Flags().Lookup(name) != nil, line)
		}
		if message := cells[4]; message != "" && message != "waits" {
			require.True(t, occurs(t, filepath.Join(root, filepath.Dir(file)), message) || occurs(t, filepath.Join(root, "internal/source"), message), line)
		}
		if cells[6] != "" {
			folder, test, _ := strings.Cut(cells[6], " ")
			require.True(t, occurs(t, filepath.Join(root, folder), "func "+test+"("), line)
		}
	}
	require.Greater(t, rows, 20)
}

// limitValue reads a default as the page writes it.
func limitValue(t *testing.T, text string) int64 {
	t.Helper()
	if d, err := time.ParseDuration(text); err == nil && text != "0" {
		return int64(d)
	}
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err, text)
	return n * map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
}

// constantOf evaluates a constant of a file whose value is written in numbers.
func constantOf(t *testing.T, file, name string) (value int64) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	value = -1
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, id := range spec.Names {
			if id.Name != name || i >= len(spec.Values) {
				continue
			}
			text := strings.NewReplacer("time.Minute", fmt.Sprint(int64(time.Minute)), "time.Second", fmt.Sprint(int64(time.Second))).Replace(types.ExprString(spec.Values[i]))
			result, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
			require.NoError(t, err, name)
			value, _ = constant.Int64Val(result.Value)
		}
		return true
	})
	require.NotEqual(t, int64(-1), value, "%s has no constant %s", file, name)
	return value
}

// occurs reports whether a text occurs in a Go file of a folder.
func occurs(t *testing.T, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(source), text) {
			return true
		}
	}
	return false
}
