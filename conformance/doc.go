// Package conformance judges the two sides of the protocol: custom destinations and the
// service that calls them. What a run sends, and what it looks at, is the matter of a
// [Suite]: package destination has that of destinations, package service that of services.
//
// The checks are the scenarios of package features. A parser of Gherkin matches
// their steps once; this package runs them, and it alone selects, schedules,
// classifies and decides, the same for every suite. It owns the verdict.
// It knows no simulator, no service, no protocol and no output format: a [Report] is data,
// package report writes it.
package conformance
