package golang

import (
	"fmt"
	"sort"
	"strings"
)

// habits are right and unusual: what they change of an endpoint.
var habits = map[string]func(*endpoint){
	"results-in-random-order": func(e *endpoint) {
		e.finish = func(results []result) any {
			byKey := map[string]result{} // and a map has no order
			out := make([]result, 0, len(results))
			for i, r := range results {
				byKey[fmt.Sprintf("%d %v", i, r.Identifier)] = r
			}
			for _, r := range byKey {
				out = append(out, r)
			}
			return out
		}
	},
	"results-sorted-by-status": func(e *endpoint) {
		e.finish = func(results []result) any {
			sort.SliceStable(results, func(i, j int) bool { return !results[i].Success && results[j].Success })
			return results
		}
	},
	"messages-are-codes": func(e *endpoint) {
		e.finish = func(results []result) any {
			for i, r := range results {
				if !r.Success {
					results[i].Message = fmt.Sprintf("E%04d", len(r.Message))
				}
			}
			return results
		}
	},
	"names-with-letters-only": func(e *endpoint) {
		e.refuse = func(_ target, f field, v any) error {
			if text, ok := v.(string); ok && f.Name == "name" && strings.ContainsAny(text, "<>{}[]|\\^~`;") {
				return fmt.Errorf("name contains invalid characters")
			}
			return nil
		}
	},
	"rate-limit-header": func(e *endpoint) {
		e.header.Set("X-RateLimit-Limit", "500")
	},
	"texts-of-64-kilobytes-at-most": func(e *endpoint) {
		e.refuse = func(_ target, f field, v any) error {
			if text, ok := v.(string); ok && len(text) > 65_535 {
				return fmt.Errorf("data too long for column %q", f.Name)
			}
			return nil
		}
	},
}
