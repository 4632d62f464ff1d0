package executor

// Deviations change how a run works, one broken rule each, so that a judge of
// services can be judged. The zero value is the right behaviour.
type Deviations struct {
}
