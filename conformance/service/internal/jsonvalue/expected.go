package jsonvalue

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Missing says where a value of the API lacks something that is wanted, "" when
// it has all of it: objects may have more members, lists have the same elements
// in any order, and numbers count by their value.
func Missing(wanted, got any, at string) string {
	switch w := wanted.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not an object", at, Brief(got))
		}
		for name, value := range w {
			if why := Missing(value, g[name], at+"."+name); why != "" {
				return why
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not a list", at, Brief(got))
		}
		return missesElements(w, g, at)
	}
	if !reflect.DeepEqual(wanted, got) {
		return fmt.Sprintf("%s is %s, not %s", at, Brief(got), Brief(wanted))
	}
	return ""
}

func missesElements(wanted, got []any, at string) string {
	if len(wanted) != len(got) {
		return fmt.Sprintf("%s has %s, not %d: %s", at, quantity.Count(len(got), "element"), len(wanted), Brief(got))
	}
	left := slices.Clone(got)
	for _, w := range wanted {
		i := slices.IndexFunc(left, func(g any) bool { return Missing(w, g, at) == "" })
		if i < 0 {
			return fmt.Sprintf("%s has no %s: %s", at, Brief(w), Brief(got))
		}
		left = slices.Delete(left, i, i+1)
	}
	return ""
}

// Brief is a value as JSON, cut where it is long.
func Brief(v any) string { return foreign.Clip(Encode(v), 200) }

// Decode is a node as encoding/json sees it; nil of an absent one.
func Decode(n *wire.Node) any {
	var v any
	if n == nil || json.Unmarshal(n.Raw, &v) != nil {
		return nil
	}
	return v
}

// MustParse is a value of the judge's own as a node.
func MustParse(v any) *wire.Node {
	n, err := wire.Parse(Encode(v))
	if err != nil {
		panic(err)
	}
	return n
}

// Down goes into a value by a path with dots, such as "mode.triggers.schedule".
func Down(n *wire.Node, path string) *wire.Node { return n.Get(strings.Split(path, ".")...) }

// Put sets a value of a body by a path with dots; missing objects on the way are
// made.
func Put(body map[string]any, path string, value any) {
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		body[first] = value
		return
	}
	copied := map[string]any{}
	if inner, ok := body[first].(map[string]any); ok {
		maps.Copy(copied, inner)
	}
	Put(copied, rest, value)
	body[first] = copied
}
