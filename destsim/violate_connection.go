package destsim

import (
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// connectionViolations are test_connection and list_objects answered wrongly (CON-*).
func connectionViolations() []violation {
	healthy := func(id, changes string, result any) violation {
		return breaks(id, changes, seams{plan: func(_ *call, value any) any {
			if v, ok := value.(connectionResult); ok && v.Success {
				return result
			}
			return value // a fault of the downstream is still reported
		}})
	}
	empty := func(id, method string) violation {
		return breaks(id, method+" with params {} answers an error -32602", seams{parsed: func(c *call) {
			if gives(c, method) && len(membersOf(c.params)) == 0 {
				c.fail(rpc.CodeInvalidParams, "invalid params: a parameter is missing")
			}
		}})
	}
	return []violation{
		healthy("CON-001", "test_connection answers {}", struct{}{}),
		healthy("CON-001.2", `test_connection answers "success":"true"`, map[string]string{"success": "true"}),
		healthy("CON-001.3", `test_connection answers "success":1`, map[string]int{"success": 1}),
		breaks("CON-002", "test_connection answers success while the downstream is broken",
			seams{plan: func(_ *call, value any) any {
				if _, ok := value.(connectionResult); ok {
					return connectionResult{Success: true}
				}
				return value
			}}),
		keeps("CON-003", "every third test_connection fails as already connected", func(*Sim) seams {
			var calls atomic.Int64 // from the start of the process
			return seams{plan: func(_ *call, value any) any {
				if _, ok := value.(connectionResult); ok && calls.Add(1)%3 == 0 {
					return connectionResult{ErrorMessage: "already connected"}
				}
				return value
			}}
		}),
		empty("CON-004", rpc.MethodTestConnection),
		empty("CON-005", rpc.MethodListObjects),
	}
}
