package protocol

import (
	"bytes"
	"encoding/json"
	"strings"
)

// layoutJSON writes JSON for people: a value that fits into width stays on one line,
// a longer one has its members on lines of their own, in the order of the text.
func layoutJSON(text []byte, width int) (string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := readNode(d)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	root.write(&b, width, 0, 0)
	return b.String(), nil
}

// node is a JSON value that keeps the order of its members.
type node struct {
	open, shut string   // "" of a scalar
	keys       []string // of an object
	items      []*node
	scalar     string
}

// readNode reads one value from d.
func readNode(d *json.Decoder) (*node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		return readItems(d, &node{open: "[", shut: "]"})
	case json.Delim('{'):
		return readItems(d, &node{open: "{", shut: "}"})
	}
	var scalar bytes.Buffer
	e := json.NewEncoder(&scalar)
	e.SetEscapeHTML(false)
	err = e.Encode(token)
	return &node{scalar: strings.TrimSpace(scalar.String())}, err
}

func readItems(d *json.Decoder, n *node) (*node, error) {
	for d.More() {
		if n.open == "{" {
			key, err := readNode(d)
			if err != nil {
				return nil, err
			}
			n.keys = append(n.keys, key.scalar+": ")
		}
		item, err := readNode(d)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := d.Token()
	return n, err
}

// flat is the value on one line.
func (n *node) flat() string {
	if n.open == "" {
		return n.scalar
	}
	parts := make([]string, len(n.items))
	for i, item := range n.items {
		parts[i] = n.key(i) + item.flat()
	}
	return n.open + strings.Join(parts, ", ") + n.shut
}

func (n *node) key(i int) string {
	if n.keys == nil {
		return ""
	}
	return n.keys[i]
}

// write appends the value; used columns of its first line are taken, and further
// lines are indented.
func (n *node) write(b *strings.Builder, width, indent, used int) {
	if flat := n.flat(); len(n.items) == 0 || used+len(flat) <= width {
		b.WriteString(flat)
		return
	}
	lead := "\n" + strings.Repeat(" ", indent+2)
	b.WriteString(n.open)
	for i, item := range n.items {
		key, comma := n.key(i), ","
		if i == len(n.items)-1 {
			comma = ""
		}
		b.WriteString(lead + key)
		item.write(b, width, indent+2, indent+2+len(key)+len(comma))
		b.WriteString(comma)
	}
	b.WriteString("\n" + strings.Repeat(" ", indent) + n.shut)
}
