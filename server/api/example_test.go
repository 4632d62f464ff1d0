package api_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/destkit/destkit/server/api"
)

// A nullable value is a pointer, and a hidden value is left out.
func Example() {
	text, err := json.Marshal(api.CustomAPICredentials{APIVersion: 1, WebhookURL: "https://example.com/destination"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output: {"api_version":1,"webhook_url":"https://example.com/destination"}
}
