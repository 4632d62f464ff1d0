package destination

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

// column is a file's description of one of its columns.
type column struct {
	name  string
	typ   string // one of the seven types; "" while only nulls were seen
	array bool
	seen  bool // a value other than null
}

// csvColumns reads the header line; every column is text.
func csvColumns(head []byte) ([]column, error) {
	head = bytes.TrimPrefix(head, []byte("\uFEFF"))
	names, err := csv.NewReader(bytes.NewReader(head)).Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read header line: %w", err)
	case len(names) > maxFields:
		return nil, fmt.Errorf("read header line: %d columns; at most %d are read", len(names), maxFields)
	}
	var columns []column
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf("read header line: column %d has no name", i+1)
		}
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			return nil, fmt.Errorf("read header line: the column %q stands twice", foreign.Clip(name, 64))
		}
		columns = append(columns, column{name: name, typ: rpc.TypeString})
	}
	return columns, nil
}

// jsonColumns reads the members of the first lines in the order in which they
// turn up. Unless the head is the whole file its last line may be cut off.
func jsonColumns(head []byte, whole bool) ([]column, error) {
	if end := bytes.LastIndexByte(head, '\n'); !whole && end >= 0 {
		head = head[:end]
	}
	var columns []column
	at := map[string]int{}
	line := 0
	for text := range bytes.SplitSeq(head, []byte("\n")) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		err := eachMember(text, func(name string, value json.RawMessage) error {
			i, known := at[name]
			if !known && len(columns) < maxFields && name != "" {
				i, at[name] = len(columns), len(columns)
				columns = append(columns, column{name: name})
				known = true
			}
			if known {
				columns[i].see(value)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read line %d: %w", line, err)
		}
	}
	for i := range columns {
		if columns[i].typ == "" {
			columns[i].typ = rpc.TypeString
		}
	}
	return columns, nil
}

// eachMember walks one JSON object in the order of its text.
func eachMember(line []byte, fn func(name string, value json.RawMessage) error) error {
	switch _, fault := rawjson.SkipText(line); {
	case rawjson.TypeOf(line) != "object":
		return errors.New("not a JSON object")
	case fault == rawjson.FaultTrailing:
		return errors.New("more than one JSON value")
	case fault != rawjson.FaultNone:
		return errors.New("not a JSON object")
	}
	walk, _ := rawjson.WalkObject(line)
	for key, value, ok := walk.Next(); ok; key, value, ok = walk.Next() {
		if err := fn(string(key), value); err != nil {
			return err
		}
	}
	return nil
}

// see widens the type by one more value: integers among floats are floats,
// anything else mixed is text.
func (c *column) see(value json.RawMessage) {
	if rawjson.IsNull(value) {
		return
	}
	typ, array := jsonType(value)
	first := !c.seen
	c.seen = true
	switch {
	case first:
		c.typ, c.array = typ, array
	case c.array != array:
		c.typ, c.array = rpc.TypeString, false
	case c.typ == "": // only empty arrays so far
		c.typ = typ
	case typ == "", c.typ == typ:
	case c.typ == rpc.TypeFloat && typ == rpc.TypeInteger, c.typ == rpc.TypeInteger && typ == rpc.TypeFloat:
		c.typ = rpc.TypeFloat
	default:
		c.typ = rpc.TypeString
	}
}

// jsonType gives the type of a value, "" for an empty array; an object is text.
func jsonType(value json.RawMessage) (typ string, array bool) {
	switch value = bytes.TrimSpace(value); value[0] {
	case 't', 'f':
		return rpc.TypeBoolean, false
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return rpc.TypeString, false
		}
		element := column{}
		for _, v := range list {
			if inner := bytes.TrimSpace(v); len(inner) > 0 && inner[0] == '[' {
				return rpc.TypeString, false // arrays of arrays are text
			}
			element.see(v)
		}
		return element.typ, true
	case '"', '{':
		return rpc.TypeString, false
	}
	if bytes.ContainsAny(value, ".eE") {
		return rpc.TypeFloat, false
	}
	return rpc.TypeInteger, false
}
