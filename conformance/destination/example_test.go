package destination_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim"
)

// Run judges any http.Handler, here a simulated destination, with permission to write and a hook
// that shows stored records. The report lists failures, with the exchange and the fix.
func ExampleRun() {
	endpoint, err := destsim.New(destsim.Config{})
	if err != nil {
		fmt.Println("no endpoint:", err)
		return
	}
	defer endpoint.Close()
	const address = "http://destination.localhost"
	r, err := destination.Run(context.Background(), destination.Target{URL: address, Handler: endpoint}, conformance.Options{
		Write: true, Objects: []string{"contact"}, Readback: conformance.HookSpec{URL: address + "/_control/readback"},
	})
	if err != nil {
		fmt.Println("could not judge:", err)
		return
	}
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			fmt.Printf("%s %s: %s\n  expected %s\n  actual   %s\n  fix      %s\n", c.Status, c.ID, c.Title, f.Expected, f.Actual, f.Fix)
		}
	}
	fmt.Println(r.Verdict, r.Tier, len(r.Failed))
	// Output: conformant semantics 0
}

// Without permission to write, Run judges only by reading.
func ExampleRun_readOnly() {
	endpoint, err := destsim.New(destsim.Config{})
	if err != nil {
		fmt.Println("no endpoint:", err)
		return
	}
	defer endpoint.Close()
	r, err := destination.Run(context.Background(), destination.Target{Handler: endpoint}, conformance.Options{
		Select: []string{"RPC-*", "OBJ-*", "FLD-*"},
	})
	if err != nil {
		fmt.Println("could not judge:", err)
		return
	}
	fmt.Println(r.Tier, r.Failed, r.Records)
	// Output: protocol [] 0
}

// Test makes each check a subtest; put it into the tests of your endpoint. Without a read-back, an
// outside observer cannot know whether a record was written.
func ExampleTest() {
	_ = func(t *testing.T, endpoint *destsim.Sim, stored map[string]conformance.ReadbackRecord) { // func TestConformance(t *testing.T)
		destination.Test(t, destination.Target{Handler: endpoint}, conformance.Options{
			Write: true, Objects: []string{"contact"},
			ReadbackFunc: func(_ context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				reply := conformance.ReadbackReply{Complete: true}
				for _, id := range q.Identifiers {
					if record, ok := stored[string(id)]; ok {
						reply.Records = append(reply.Records, record)
					}
				}
				return reply, nil
			},
		})
	}
}
