package conformance_test

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
)

// The catalogue has what each rule requires and how to fix a breach.
func ExampleLoadCatalogue() {
	catalogue, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	if err != nil {
		panic(err)
	}
	checks, err := catalogue.Match("RES-00[12]")
	if err != nil {
		panic(err)
	}
	for _, c := range checks {
		fmt.Println(c.ID, c.Level, c.Title)
	}
	// Output:
	// RES-001 MUST A batch is answered by an array of record results
	// RES-002 MUST Every record that was sent has a result
}
