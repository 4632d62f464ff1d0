// Package conformance judges a custom destination: it sends what the service
// would send (spec 4.2), looks at what comes back, and says which rules hold,
// which are broken and which cannot be decided without more evidence.
//
// The checks are the scenarios of package features. A parser of Gherkin matches
// their steps once; this package runs them, and it alone selects, schedules,
// classifies and decides. It owns the verdict, the write safety and the evidence.
// It knows no simulator, no service and no output format: a Report is data,
// package report writes it.
package conformance
