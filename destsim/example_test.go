package destsim_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
)

// A client under test calls a destination that stores acknowledged records, and
// fails on purpose: the first batch is answered with 429 here.
func Example() {
	sim, err := destsim.New(destsim.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer sim.Close()
	if _, err := sim.ArmFault(destsim.Fault{
		Kind: "throttle", RetryAfter: "seconds", Seconds: 2, When: destsim.Trigger{Method: rpc.MethodSyncBatch, First: 1},
	}); err != nil {
		log.Fatal(err)
	}
	endpoint := httptest.NewServer(sim)
	defer endpoint.Close()

	client := &rpc.Client{URL: endpoint.URL}
	objects, err := client.ListObjects(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(objects[0].APIName, len(sim.UnfiredFaults()))
	// Output: contact 1
}
