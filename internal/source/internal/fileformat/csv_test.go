package fileformat_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/internal/fileformat"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

func TestCSVKinds(t *testing.T) {
	for column, want := range map[string]api.Kind{
		"1,2,-3,0":                              api.KindInteger,
		"1,,3":                                  api.KindInteger,
		"9007199254740993,99999999999999999999": api.KindInteger,
		"1,2.50":                                api.KindDecimal,
		"1,1e3":                                 api.KindFloat,
		"-0.5E-3":                               api.KindFloat,
		"true,false":                            api.KindBoolean,
		"true,1":                                api.KindString,
		"TRUE,FALSE":                            api.KindString,
		"007,1":                                 api.KindString,
		"+1":                                    api.KindString,
		"-0":                                    api.KindDecimal,
		"1.,2":                                  api.KindString,
		".5":                                    api.KindString,
		"1e":                                    api.KindString,
		"NaN":                                   api.KindString,
		"2024-02-29":                            api.KindDate,
		"2023-02-29":                            api.KindString,
		"2024-02-29,x":                          api.KindString,
		"2024-02-29T10:00:00Z,2024-02-29 10:00:00.25": api.KindDateTime,
		"2024-02-29T10:00:00+02:00":                   api.KindDateTime,
		"2024-02-29T25:00:00":                         api.KindString,
		"2024-02-29,2024-02-29T10:00:00":              api.KindString,
		"":                                            api.KindString,
		"ä":                                           api.KindString,
	} {
		content := "a,b\n"
		for _, v := range strings.Split(column, ",") {
			content += v + ",x\n"
		}
		columns, err := open(t, "csv", map[string]any{"path": testkit.WriteFile(t, "a.csv", content)}, source.Options{}).Columns(t.Context(), source.Object{Name: "a"})
		require.NoError(t, err)
		require.Equal(t, want, columns[0].Kind, column)
		require.Equal(t, string(want), columns[0].Type)
	}
	late := "a\n" + strings.Repeat("1\n", fileformat.Sampled) + "x\n"
	src := open(t, "csv", map[string]any{"path": testkit.WriteFile(t, "a.csv", late)}, source.Options{})
	columns, err := src.Columns(t.Context(), source.Object{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, api.KindInteger, columns[0].Kind, "only the first 1,000 values count")
	rows := readAll(t, src, source.Object{Name: "a"}, nil, nil)
	require.Equal(t, `["x"]`, rows[fileformat.Sampled], "what comes later stays text")
}

func TestCSVRows(t *testing.T) {
	path := testkit.WriteFile(t, "a.csv", "\ufeff id , name\t,\"quo\"\"ted\",ok\r\n"+
		"2,\"a, \"\"b\"\"\nc\",x,true\r\n10,,\"\",false\n1,ä\xff,\\,\n")
	src := open(t, "csv", map[string]any{"path": path}, source.Options{})
	columns, err := src.Columns(t.Context(), source.Object{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"id integer integer", "name string string", `quo"ted string string`, "ok boolean boolean"}, short(columns))
	want := []string{`[1,"ä\uFFfd","\\",null]`, `[10,null,null,false]`, `[2,"a, \"b\"\nc","x",true]`}
	require.Equal(t, want, readAll(t, src, source.Object{Name: "a"}, nil, []string{"id"}))
	require.Equal(t, []string{"[true,2]", "[false,10]", "[null,1]"}, readAll(t, src, source.Object{Name: "a"}, []string{"ok", "id"}, nil))
	require.Equal(t, []string{"[true]", "[null]", "[false]"}, readAll(t, src, source.Object{Name: "a"}, []string{"ok"}, []string{"name"}))
}

func TestCSVRefuses(t *testing.T) {
	for content, says := range map[string]string{
		"":                "the file is empty: its first line must name the columns",
		"\ufeff":          "the file is empty",
		"\n\n":            "the file is empty",
		"a,,b\n":          "line 1: column 2 has no name",
		"a, \n":           "line 1: column 2 has no name",
		"a,b,a\n":         `columns 1 and 3 are both named "a"`,
		"a,\xff\xfe\n":    "line 1: the name of column 2 is not UTF-8",
		"\xff\xfea\x00\n": "line 1: the name of column 1 is not UTF-8",
		"a,b\n1\n":        "line 2: 1 fields, and the header has 2",
		"a\n1\n1,2\n":     "line 3: 2 fields, and the header has 1",
		"a\n1\"2\n":       "line 2, column 2: bare \" in non-quoted-field",
		"a\n\"open\n":     "line 2, column 7: extraneous or missing \" in quoted-field",
		"a\n\"" + strings.Repeat("x\n", fileformat.LongestRecord/2+(64<<10)): "after line 1: the record is longer than 16 MiB",
	} {
		path := testkit.WriteFile(t, "a.csv", content)
		_, err := open(t, "csv", map[string]any{"path": path}, source.Options{}).Tables(t.Context())
		require.ErrorContains(t, err, "read "+path+": ")
		require.ErrorContains(t, err, says, "%.40q", content)
	}
}

// FuzzCSV: no file panics, and its rows are JSON in UTF-8 with the columns
// that were discovered.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "a\n\"x\"\"y\"\n", "\ufeffa\n\xff\n", "a,a\n", "a\n1e5\n2024-01-01\n", "\"", "a\r\n\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) { fuzzFile(t, fileformat.CSV{}, "a.csv", content) })
}

// fuzzFile reads any bytes as a file.
func fuzzFile(t *testing.T, format fileformat.Format, name, content string) {
	file, err := os.Open(testkit.WriteFile(t, name, content))
	require.NoError(t, err)
	defer file.Close()
	columns, err := fileformat.Columns(t.Context(), format, file)
	if err != nil {
		return
	}
	wanted := make([]int, len(columns))
	for i, c := range columns {
		wanted[i] = i
		require.True(t, utf8.ValidString(c.Name))
	}
	rows, err := format.Rows(t.Context(), file, columns, wanted)
	if err != nil {
		return
	}
	defer rows.Close()
	for {
		values, err := rows.Next()
		if err != nil {
			return
		}
		require.Len(t, values, len(columns))
		for _, v := range values {
			requireCanonical(t, v)
		}
	}
}

func TestCSVReaderStopsAfterError(t *testing.T) {
	src := open(t, "csv", map[string]any{"path": testkit.WriteFile(t, "a.csv", "a,b\n"+strings.Repeat("1,2\n", fileformat.Sampled)+"1\n")}, source.Options{})
	rows, err := src.(source.Reader).Rows(t.Context(), source.Object{Name: "a"}, nil, nil)
	require.NoError(t, err)
	defer rows.Close()
	for err == nil {
		_, err = rows.Next()
	}
	require.False(t, errors.Is(err, io.EOF))
	require.ErrorContains(t, err, fmt.Sprintf("line %d: 1 fields", fileformat.Sampled+2))
}
