package fileformat

import (
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

// leafWriter picks the writer of a type.
func leafWriter(t parquet.Type) func([]byte, parquet.Value) []byte {
	write := physicalWriter(t.Kind())
	if logical := t.LogicalType(); logical != nil {
		if w := logicalWriter(t.Kind(), logical.Value); w != nil {
			write = w
		}
	}
	return func(dst []byte, v parquet.Value) []byte {
		if v.IsNull() {
			return append(dst, cell.Null...)
		}
		return write(dst, v)
	}
}

// physicalWriter writes a value of a column without a logical type.
func physicalWriter(kind parquet.Kind) func([]byte, parquet.Value) []byte {
	switch kind {
	case parquet.Boolean:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendBool(dst, v.Boolean()) }
	case parquet.Int32:
		return func(dst []byte, v parquet.Value) []byte { return strconv.AppendInt(dst, int64(v.Int32()), 10) }
	case parquet.Int64:
		return func(dst []byte, v parquet.Value) []byte { return strconv.AppendInt(dst, v.Int64(), 10) }
	case parquet.Int96:
		return appendInt96
	case parquet.Float:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendFloat(dst, float64(v.Float()), 32) }
	case parquet.Double:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendFloat(dst, v.Double(), 64) }
	}
	return func(dst []byte, v parquet.Value) []byte { return cell.AppendBinary(dst, v.ByteArray()) }
}

// logicalWriter writes a value by its logical type in the schema; nil where
// the physical type suffices.
func logicalWriter(kind parquet.Kind, logical any) func([]byte, parquet.Value) []byte {
	switch t := logical.(type) {
	case *format.StringType, *format.EnumType:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendString(dst, v.ByteArray()) }
	case *format.JsonType:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendEmbedded(dst, v.ByteArray()) }
	case *format.UUIDType:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendUUID(dst, v.ByteArray()) }
	case *format.Float16Type:
		return func(dst []byte, v parquet.Value) []byte { return cell.AppendFloat(dst, float16(v.ByteArray()), 32) }
	case *format.DateType:
		return func(dst []byte, v parquet.Value) []byte {
			return append(cell.AppendDate(append(dst, '"'), int64(v.Int32())), '"')
		}
	case *format.DecimalType:
		return func(dst []byte, v parquet.Value) []byte { return appendUnscaled(dst, kind, v, int(t.Scale)) }
	case *format.IntType:
		if t.IsSigned {
			return nil
		}
		return func(dst []byte, v parquet.Value) []byte {
			if kind == parquet.Int32 {
				return strconv.AppendUint(dst, uint64(v.Uint32()), 10)
			}
			return strconv.AppendUint(dst, v.Uint64(), 10)
		}
	case *format.TimeType:
		perSecond := int64(time.Second / t.Unit.Value.Duration())
		return func(dst []byte, v parquet.Value) []byte {
			return append(cell.AppendClock(append(dst, '"'), whole(kind, v)*(1e9/perSecond)), '"')
		}
	case *format.TimestampType:
		perSecond := int64(time.Second / t.Unit.Value.Duration())
		return func(dst []byte, v parquet.Value) []byte {
			dst = cell.AppendTimestamp(append(dst, '"'), v.Int64(), perSecond)
			if t.IsAdjustedToUTC {
				dst = append(dst, 'Z')
			}
			return append(dst, '"')
		}
	}
	return nil
}

// whole reads an integer of either width.
func whole(kind parquet.Kind, v parquet.Value) int64 {
	if kind == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// appendUnscaled writes a decimal: a whole number of which the last digits are
// behind the point.
func appendUnscaled(dst []byte, kind parquet.Kind, v parquet.Value, scale int) []byte {
	var digits []byte
	switch kind {
	case parquet.Int32, parquet.Int64:
		digits = strconv.AppendInt(nil, whole(kind, v), 10)
	default:
		digits = twosComplement(v.ByteArray()).Append(nil, 10)
	}
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if scale <= 0 {
		return append(dst, digits...)
	}
	for len(digits) <= scale {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - scale
	dst = append(append(dst, digits[:point]...), '.')
	return append(dst, digits[point:]...)
}

// twosComplement reads a signed number, the highest byte first.
func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// appendInt96 writes the old timestamp: nanoseconds of a Julian day.
func appendInt96(dst []byte, v parquet.Value) []byte {
	t := v.Int96()
	const unixDay = 2440588
	dst = cell.AppendDate(append(dst, '"'), int64(t[2])-unixDay)
	dst = cell.AppendClock(append(dst, 'T'), int64(t[1])<<32|int64(t[0]))
	return append(dst, `Z"`...)
}

// float16 reads a number of half precision, the lowest byte first.
func float16(b []byte) float64 {
	if len(b) != 2 {
		return math.NaN()
	}
	bits := uint16(b[0]) | uint16(b[1])<<8
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		if v = math.Inf(1); fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits&0x8000 != 0 {
		v = -v
	}
	return v
}

// parquetNode writes the values of one node of the schema as JSON. Values of a
// nested field are stored per leaf with two levels each: the definition level
// is how deep the path to the value is there, the repetition level in which of
// the lists around it a new element starts.
type parquetNode struct {
	name       string
	optional   bool
	repeated   bool
	definition int
	repetition int
	first, end int // its leaves
	leaf       func(dst []byte, v parquet.Value) []byte
	list       *parquetNode // the repeated node of a list
	entry      *parquetNode // the repeated node of a map
	inner      bool         // the group around the element of a list
	children   []*parquetNode
}

// newParquetNode prepares a column once, so that rows are written without
// asking for its type again.
func newParquetNode(c *parquet.Column) *parquetNode {
	n := &parquetNode{
		name: c.Name(), optional: c.Optional(), repeated: c.Repeated(),
		definition: c.MaxDefinitionLevel(), repetition: c.MaxRepetitionLevel(),
	}
	if c.Leaf() {
		n.first, n.end, n.leaf = c.Index(), c.Index()+1, leafWriter(c.Type())
		return n
	}
	for _, child := range c.Columns() {
		n.children = append(n.children, newParquetNode(child))
	}
	if len(n.children) == 0 {
		return n
	}
	n.first, n.end = n.children[0].first, n.children[len(n.children)-1].end
	switch {
	case mapEntry(c) != nil:
		n.entry = n.children[0]
	case listElement(c) != nil:
		n.list = n.children[0]
		// A repeated group of one field is only a wrapping, except where it is
		// named as old writers named a structure of one field.
		n.list.inner = len(n.list.children) == 1 && n.list.name != "array" && n.list.name != c.Name()+"_tuple"
	}
	return n
}

// cellReader holds the values of one row by their leaf.
type cellReader struct{ values [][]parquet.Value }

// load takes a row apart into its leaves.
func (c *cellReader) load(row parquet.Row) {
	row.Range(func(leaf int, values []parquet.Value) bool {
		if leaf < len(c.values) {
			c.values[leaf] = values
		}
		return true
	})
}

// skip passes over one value of each leaf: they all represent a missing value.
func (c *cellReader) skip(n *parquetNode) {
	for leaf := n.first; leaf < n.end; leaf++ {
		c.values[leaf] = c.values[leaf][1:]
	}
}

// level is the definition level of the next value of a node.
func (c *cellReader) level(n *parquetNode) int {
	return c.values[n.first][0].DefinitionLevel()
}

// again reports whether another element of the same list follows.
func (c *cellReader) again(n *parquetNode) bool {
	left := c.values[n.first]
	return len(left) > 0 && left[0].RepetitionLevel() == n.repetition
}

// append writes the next value of the node.
func (n *parquetNode) append(dst []byte, c *cellReader) []byte {
	if n.first == n.end {
		return append(dst, '{', '}') // a group of nothing
	}
	switch {
	case n.repeated:
		return n.appendList(dst, c)
	case n.optional && c.level(n) < n.definition:
		c.skip(n)
		return append(dst, cell.Null...)
	}
	return n.appendPresent(dst, c)
}

// appendPresent writes a value that is there.
func (n *parquetNode) appendPresent(dst []byte, c *cellReader) []byte {
	switch {
	case n.leaf != nil:
		v := c.values[n.first][0]
		c.values[n.first] = c.values[n.first][1:]
		return n.leaf(dst, v)
	case n.list != nil:
		return n.list.appendList(dst, c)
	case n.entry != nil:
		return n.entry.appendMap(dst, c)
	case n.inner:
		return n.children[0].append(dst, c)
	}
	dst = append(dst, '{')
	for i, child := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(cell.AppendString(dst, child.name), ':')
		dst = child.append(dst, c)
	}
	return append(dst, '}')
}

// appendList writes the elements of a repeated node.
func (n *parquetNode) appendList(dst []byte, c *cellReader) []byte {
	if c.level(n) < n.definition {
		c.skip(n)
		return append(dst, '[', ']')
	}
	dst = n.appendPresent(append(dst, '['), c)
	for c.again(n) {
		dst = n.appendPresent(append(dst, ','), c)
	}
	return append(dst, ']')
}

// appendMap writes key and value pairs as an object.
func (n *parquetNode) appendMap(dst []byte, c *cellReader) []byte {
	if c.level(n) < n.definition {
		c.skip(n)
		return append(dst, '{', '}')
	}
	dst = append(dst, '{')
	for first := true; first || c.again(n); first = false {
		if !first {
			dst = append(dst, ',')
		}
		start := len(dst)
		dst = n.children[0].append(dst, c)
		if dst[start] != '"' {
			key := string(dst[start:])
			dst = cell.AppendString(dst[:start], key)
		}
		dst = n.children[1].append(append(dst, ':'), c)
	}
	return append(dst, '}')
}
