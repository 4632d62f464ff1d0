package loadgen_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/loadgen"
)

// A load of ten requests in a closed loop; the result of every record is checked.
func ExampleRun() {
	sim, err := destsim.New(destsim.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer sim.Close()
	endpoint := httptest.NewServer(sim)
	defer endpoint.Close()

	result, err := loadgen.Run(context.Background(), loadgen.Options{
		Target: loadgen.Target{URL: endpoint.URL},
		Write:  true,
		Work:   loadgen.Work{Objects: []loadgen.Share{{Name: "contact"}}, BatchSize: 5},
		Closed: true, Connections: 1, Count: 10,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Requests, result.Acknowledged, result.Errors)
	// Output: 10 50 0
}
