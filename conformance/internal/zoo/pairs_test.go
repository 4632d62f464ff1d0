package zoo_test

// Common are ten mistakes that are often made, and of which any two can be in
// one server: no mistake may hide another.
func Common() []Mistake {
	var out []Mistake
	for _, name := range []string{
		"html-page-for-exceptions", "object-without-identifier", "field-type-json", "error-null", "plain-json-parser",
		"failures-filtered-out", "write-not-awaited", "update-creates", "decimals-as-numbers", "text-trimmed",
	} {
		for _, m := range Mistakes() {
			if m.Language == Node && m.Name == name {
				out = append(out, m)
			}
		}
	}
	return out
}
