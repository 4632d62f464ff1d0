package openapi_test

import (
	"errors"
	"fmt"

	"github.com/destkit/destkit/openapi"
)

// An endpoint's answer is held against the published shape of the method.
func ExampleValidateResult() {
	err := openapi.ValidateResult("get_sync_speed", []byte(`{"maximum_batch_size":"100","maximum_parallel_batches":2,"maximum_records_per_second":50}`))
	var invalid *openapi.InvalidError
	if errors.As(err, &invalid) {
		for _, problem := range invalid.Problems {
			fmt.Println(problem.Path, problem.Message)
		}
	}
	// Output: /maximum_batch_size got string, want integer
}

// The operations of the REST API, as the document has them.
func ExampleOperations() {
	for _, operation := range openapi.Operations() {
		if operation.ID == "fetchSync" {
			fmt.Println(operation.Method, operation.Path, operation.Auth, operation.Statuses)
		}
	}
	// Output: GET /syncs/{sync_id} workspace [200 400 401 403 404 429]
}
