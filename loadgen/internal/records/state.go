package records

// State is what a reply said of a record.
type State uint8

const (
	Acked   State = iota
	Refused       // one result without success
	Unknown       // no reply, or none that says what happened
)

// Moved is a record of a batch whose key is not the next one after that before it.
type Moved struct {
	Record int
	Key    int64
}

// Bad is a record that a reply did not acknowledge.
type Bad struct {
	Record int
	State  State
}
