package yamldoc

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxExpanded bounds what a document comes to in bytes once every alias stands
// for what it repeats. Decoding shares it, so that a few lines can mean
// gigabytes to whoever writes the value out again.
const maxExpanded = 64 << 20

// tooLong gives the token at which the expanded document grows beyond
// maxExpanded, nil when it never does.
func tooLong(body ast.Node) *token.Token {
	e := expansion{anchors: map[string]int{}}
	e.size(body)
	return e.at
}

// expansion adds up sizes in bytes; an anchor stands before its aliases.
type expansion struct {
	anchors map[string]int
	at      *token.Token
}

// size is that of a node with all aliases below it, at most maxExpanded + 1.
func (e *expansion) size(node ast.Node) int {
	if node == nil || e.at != nil {
		return 0
	}
	total := 1
	add := func(nodes ...ast.Node) {
		for _, child := range nodes {
			total += e.size(child)
		}
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, value := range n.Values {
			add(value)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		add(n.Value)
	case *ast.SequenceNode:
		add(n.Values...)
	case *ast.TagNode:
		add(n.Value)
	case *ast.AnchorNode:
		add(n.Value)
		e.anchors[nameOf(n.Name)] = total
	case *ast.AliasNode:
		total += e.anchors[nameOf(n.Value)]
	default:
		if tk := node.GetToken(); tk != nil {
			total += len(tk.Value)
		}
	}
	if total > maxExpanded && e.at == nil {
		e.at = node.GetToken()
	}
	return total
}

// nameOf is the name of an anchor, as an anchor or an alias has it.
func nameOf(node ast.Node) string {
	if node == nil || node.GetToken() == nil {
		return ""
	}
	return node.GetToken().Value
}
