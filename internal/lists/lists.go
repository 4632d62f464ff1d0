// Package lists makes one list of another. An empty result is nil.
package lists

// Of are the elements as become makes them.
func Of[A, B any](in []A, become func(A) B) []B {
	if len(in) == 0 {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = become(a)
	}
	return out
}

// Where are the elements that keep accepts.
func Where[A any](in []A, keep func(A) bool) []A {
	var out []A
	for _, a := range in {
		if keep(a) {
			out = append(out, a)
		}
	}
	return out
}
