package api_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/destkit/destkit/server/api"
)

// What may be null on the wire is a pointer, and what is not shown stays out.
func Example() {
	text, err := json.Marshal(api.CustomAPICredentials{APIVersion: 1, WebhookURL: "https://example.com/destination"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output: {"api_version":1,"webhook_url":"https://example.com/destination"}
}
