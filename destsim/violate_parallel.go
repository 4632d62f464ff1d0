package destsim

// parallelViolations are parallel calls that meet (PAR-*).
func parallelViolations() []violation { return nil }
