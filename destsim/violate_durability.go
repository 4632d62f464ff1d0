package destsim

// durabilityViolations are acknowledged records that are lost or doubled (DUR-*, DUP-*).
func durabilityViolations() []violation { return nil }
