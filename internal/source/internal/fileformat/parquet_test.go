package fileformat_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/internal/fileformat"
	"github.com/destkit/destkit/internal/testkit"
)

// flat has a column of each type without nesting.
type flat struct {
	ID       int64            `parquet:"id"`
	Name     *string          `parquet:"name,optional"`
	Small    int32            `parquet:"small"`
	Unsigned uint64           `parquet:"unsigned"`
	Score    float64          `parquet:"score"`
	Half     float32          `parquet:"half"`
	OK       bool             `parquet:"ok"`
	Raw      []byte           `parquet:"raw"`
	Day      int32            `parquet:"day,date"`
	At       time.Time        `parquet:"at,timestamp(millisecond)"`
	AtNano   time.Time        `parquet:"at_nano,timestamp(nanosecond)"`
	Price    int64            `parquet:"price,decimal(2:18)"`
	Big      [16]byte         `parquet:"big,decimal(3:38)"`
	UUID     [16]byte         `parquet:"uuid,uuid"`
	Doc      string           `parquet:"doc,json"`
	Plan     string           `parquet:"plan,enum"`
	Old      deprecated.Int96 `parquet:"old"`
}

// nested has lists, maps and groups in each other.
type nested struct {
	ID     int64            `parquet:"id"`
	Tags   []string         `parquet:"tags,list"`
	Plain  []int32          `parquet:"plain"`
	Attrs  map[string]int64 `parquet:"attrs"`
	Group  *inner           `parquet:"group,optional"`
	Groups []inner          `parquet:"groups,list"`
	Lists  []listOf         `parquet:"lists,list"`
	ByNum  map[int32]string `parquet:"by_num"`
}

type inner struct {
	A *int64   `parquet:"a,optional"`
	B []inner2 `parquet:"b,list"`
}

type inner2 struct {
	C string `parquet:"c"`
}

type listOf struct {
	Values []int64 `parquet:"values,list"`
}

// writeParquet writes rows with small pages, so that rows cross them.
func writeParquet[T any](t testing.TB, path string, rows []T, options ...parquet.WriterOption) {
	t.Helper()
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf, append([]parquet.WriterOption{parquet.PageBufferSize(64), parquet.MaxRowsPerRowGroup(150)}, options...)...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, buf.Bytes(), 0o600))
}

func TestParquetFlat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	name := "ä\n"
	at := time.Date(2024, 2, 29, 23, 59, 58, 120_000_000, time.UTC)
	big := [16]byte{15: 5} // 0.005
	negative := [16]byte{}
	for i := range negative {
		negative[i] = 0xff // -0.001
	}
	writeParquet(t, path, []flat{
		{ID: 1, Name: &name, Small: -7, Unsigned: math.MaxUint64, Score: 1.5, Half: 0.1, OK: true, Raw: []byte{0, 255}, Day: 19782, At: at, AtNano: at.Add(1),
			Price: -5, Big: big, UUID: [16]byte{0xde, 0xad, 15: 1}, Doc: `{ "a" : 1 }`, Plan: "free", Old: deprecated.Int96{1000, 0, 2440589}},
		{ID: 2, Score: math.Inf(-1), Day: -1, At: time.Unix(0, 0), AtNano: time.Unix(0, 0), Price: 123456, Big: negative, Doc: "no json", Old: deprecated.Int96{0, 0, 2440588}},
	})
	src := open(t, "parquet", map[string]any{"path": path}, source.Options{})
	columns, err := src.Columns(t.Context(), source.Object{Name: "a"})
	require.NoError(t, err)
	var kinds []string
	for _, c := range columns {
		kinds = append(kinds, c.Name+" "+string(c.Kind))
		require.NotEmpty(t, c.Type)
	}
	require.Equal(t, []string{"id integer", "name string", "small integer", "unsigned integer", "score float", "half float", "ok boolean", "raw binary",
		"day date", "at date_time", "at_nano date_time", "price decimal", "big decimal", "uuid string", "doc object", "plan string", "old date_time"}, kinds)
	require.Equal(t, []string{
		`[1,"ä\n",-7,18446744073709551615,1.5,0.1,true,"AP8=","2024-02-29","2024-02-29T23:59:58.12Z","2024-02-29T23:59:58.120000001Z",-0.05,0.005,"dead0000-0000-0000-0000-000000000001",{"a":1},"free","1970-01-02T00:00:00.000001Z"]`,
		`[2,null,0,0,"-Infinity",0,false,"","1969-12-31","1970-01-01T00:00:00Z","1970-01-01T00:00:00Z",1234.56,-0.001,"00000000-0000-0000-0000-000000000000","no json","","1970-01-01T00:00:00Z"]`,
	}, readAll(t, src, source.Object{Name: "a"}, nil, []string{"id"}))
	require.Equal(t, []string{`[-0.05,1]`, `[1234.56,2]`}, readAll(t, src, source.Object{Name: "a"}, []string{"price", "id"}, nil))
}

func TestParquetNested(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	seven := int64(7)
	writeParquet(t, path, []nested{
		{ID: 1},
		{ID: 2, Tags: []string{"x"}, Plain: []int32{1, 2}, Attrs: map[string]int64{"k": 1}, Group: &inner{}, Groups: []inner{{}, {A: &seven}}, ByNum: map[int32]string{5: "five"}},
		{ID: 3, Tags: []string{"a", "b", "c"}, Group: &inner{A: &seven, B: []inner2{{"p"}, {"q"}}},
			Groups: []inner{{B: []inner2{{"r"}}}, {A: &seven, B: []inner2{{"s"}, {"t"}}}}, Lists: []listOf{{}, {[]int64{1, 2}}, {[]int64{3}}}},
	})
	src := open(t, "parquet", map[string]any{"path": path}, source.Options{})
	columns, err := src.Columns(t.Context(), source.Object{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"id INT(64,true) integer", "tags LIST array", "plain LIST array", "attrs MAP object", "group GROUP object", "groups LIST array", "lists LIST array", "by_num MAP object"}, short(columns))
	require.Equal(t, []string{
		`[1,[],[],{},null,[],[],{}]`,
		`[2,["x"],[1,2],{"k":1},{"a":null,"b":[]},[{"a":null,"b":[]},{"a":7,"b":[]}],[],{"5":"five"}]`,
		`[3,["a","b","c"],[],{},{"a":7,"b":[{"c":"p"},{"c":"q"}]},[{"a":null,"b":[{"c":"r"}]},{"a":7,"b":[{"c":"s"},{"c":"t"}]}],[{"values":[]},{"values":[1,2]},{"values":[3]}],{}]`,
	}, readAll(t, src, source.Object{Name: "a"}, nil, nil))
	require.Equal(t, `[[{"values":[]},{"values":[1,2]},{"values":[3]}]]`, readAll(t, src, source.Object{Name: "a"}, []string{"lists"}, []string{"id"})[2])
}

func TestParquetManyRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	rows := make([]nested, 1000)
	for i := range rows {
		rows[i] = nested{ID: int64(i), Tags: make([]string, i%5)}
	}
	writeParquet(t, path, rows)
	got := readAll(t, open(t, "parquet", map[string]any{"path": path}, source.Options{}), source.Object{Name: "a"}, []string{"id", "tags"}, nil)
	require.Len(t, got, 1000)
	require.Equal(t, `[999,["","","",""]]`, got[999])
	require.Equal(t, `[500,[]]`, got[500])
}

func TestParquetRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	writeParquet(t, path, []nested{{ID: 1, Tags: []string{"x"}}})
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte("PAR1 but not really, only a text"), "short": []byte("PA"),
		"no end": whole[:len(whole)-4], "no start": whole[8:],
	} {
		path := testkit.WriteFile(t, name+".parquet", string(content))
		_, err := open(t, "parquet", map[string]any{"path": path}, source.Options{}).Tables(t.Context())
		require.ErrorContains(t, err, "read "+path+": ", name)
		require.ErrorContains(t, err, "not a Parquet file", name)
		require.Equal(t, name == "no end" || name == "text", strings.Contains(err.Error(), "its end is missing"), err)
	}
}

// FuzzParquet: a file that was bent anywhere is an error or other values, never
// a panic.
func FuzzParquet(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.parquet")
	writeParquet(f, path, []nested{{ID: 1, Tags: []string{"x"}, Groups: []inner{{}}}, {ID: 2}})
	whole, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(whole, uint16(0), byte(0))
	f.Add(whole, uint16(40), byte(0xff))
	f.Add(whole, uint16(len(whole)-30), byte(1))
	f.Fuzz(func(t *testing.T, content []byte, at uint16, flip byte) {
		if len(content) > 0 {
			content = bytes.Clone(content)
			content[int(at)%len(content)] ^= flip
		}
		fuzzFile(t, fileformat.Parquet{}, "a.parquet", string(content))
	})
}
