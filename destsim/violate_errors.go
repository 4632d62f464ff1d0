package destsim

// errorsViolations are unsafe errors and slow answers (ERR-*, TIM-*).
func errorsViolations() []violation { return nil }
