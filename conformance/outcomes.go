package conformance

import "errors"

// decided is an Outcome as it comes back from a step.
type decided interface {
	error
	Status() Status
	Reason() string
	Decider() string
}

// statusOf is the status that the error of a step stands for.
func statusOf(err error) Status {
	if o, is := errors.AsType[decided](err); is {
		return o.Status()
	}
	if err == nil {
		return Pass
	}
	return HarnessError
}

// reasonOf is what the error of a step says.
func reasonOf(err error) string {
	if o, is := errors.AsType[decided](err); is {
		return o.Reason()
	}
	return err.Error()
}

// deciderOf names what would decide an undecided check; "" when nothing would.
func deciderOf(err error) string {
	if o, is := errors.AsType[decided](err); is {
		return o.Decider()
	}
	return ""
}
