package yamldoc

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds how deep a document may nest. The library's time grows with
// the square of the depth, and no document that a person writes comes near.
const maxDepth = 100

// tooDeep gives the token at which tokens nest deeper than maxDepth, nil when
// they never do. Brackets nest by pairs; the marks of lists, keys, tags and
// anchors nest within their line; what nests by indentation pays for each level
// with a longer line and needs no bound.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, marks, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			marks, line = 0, tk.Position.Line
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			marks++
		case token.CollectEntryType: // a comma: the next item starts afresh
			marks = 0
		}
		if brackets > maxDepth || marks > maxDepth {
			return tk
		}
	}
	return nil
}

// depthMessage says what tooDeep has found.
var depthMessage = fmt.Sprintf("nested deeper than %d levels", maxDepth)
