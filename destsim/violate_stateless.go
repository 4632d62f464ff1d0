package destsim

// statelessViolations are memory that a destination must not have (STA-*).
func statelessViolations() []violation { return nil }
