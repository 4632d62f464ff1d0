package destsim

import "github.com/destkit/destkit/destsim/rpc"

// semanticsViolations are operations with the wrong effect (SEM-*).
func semanticsViolations() []violation {
	return []violation{
		{
			Violation: Violation{ID: "SEM-005", Changes: "update creates a record that is absent and reports success"},
			arm: func(*Sim) seams {
				return seams{apply: func(_ *call, r *record, next next) result {
					if r.operation == rpc.OperationUpdate {
						r.operation = rpc.OperationUpsert
					}
					return next(r)
				}}
			},
		},
	}
}
