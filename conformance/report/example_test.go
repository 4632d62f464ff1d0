package report_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
)

// A run is written in any of the formats, and read back to be compared.
func Example() {
	sim, err := destsim.New(destsim.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer sim.Close()
	r, err := destination.Run(context.Background(), destination.Target{Handler: sim}, conformance.Options{Select: []string{"RPC-001"}})
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(os.TempDir(), "destkit-example.xml")
	defer os.Remove(file)
	err = report.Options{}.WriteFile("junit", file, r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(report.Compare(r, r).NewlyFailing))
	// Output: 0
}
