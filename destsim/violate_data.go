package destsim

// dataViolations are values that are not kept exactly (DAT-*).
func dataViolations() []violation { return nil }
