package fileformat

import (
	"github.com/parquet-go/parquet-go"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

// parquetNode writes the values of one node of the schema as JSON. Values of a
// nested field are stored per leaf with two levels each: the definition level
// says how deep the path to the value is there, the repetition level in which
// of the lists around it a new element starts.
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

// skip passes over one value of each leaf: they all stand for something that is
// not there.
func (c *cellReader) skip(n *parquetNode) {
	for leaf := n.first; leaf < n.end; leaf++ {
		c.values[leaf] = c.values[leaf][1:]
	}
}

// level is the definition level of the next value of a node.
func (c *cellReader) level(n *parquetNode) int {
	return c.values[n.first][0].DefinitionLevel()
}

// again tells that another element of the same list follows.
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
