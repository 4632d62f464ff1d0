package features_test

import (
	"fmt"
	"io/fs"
	"log"

	"github.com/destkit/destkit/features"
)

// The feature files of the judge of destinations.
func Example() {
	files, err := fs.Glob(features.FS, "destination/r*.feature")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(files)
	// Output: [destination/results.feature destination/rpc.feature]
}
