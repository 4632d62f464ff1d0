package conformance

import (
	"fmt"
	"testing"
)

func TestZZ(t *testing.T) {
	cat, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range cat.Checks {
		for _, s := range undefinedSteps(c) {
			if !seen[s] {
				fmt.Println(s, " <-", c.ID)
			}
			seen[s] = true
		}
	}
}
