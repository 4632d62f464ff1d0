package rpc_test

import (
	"fmt"
	"log"

	"github.com/destkit/destkit/destsim/rpc"
)

// The results of a batch are scanned in one pass: identifiers stay raw JSON, so that
// integers beyond 2^53 keep their digits.
func ExampleScanResults() {
	result := []byte(`{"record_results":[
		{"identifier":9007199254740993,"success":true},
		{"identifier":"a@x.io","success":false,"error_message":"no such city"}]}`)
	err := rpc.ScanResults(result, func(identifier []byte, success bool, message []byte) error {
		fmt.Printf("%s %t %q\n", identifier, success, rpc.MessageText(message))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 9007199254740993 true ""
	// "a@x.io" false "no such city"
}
