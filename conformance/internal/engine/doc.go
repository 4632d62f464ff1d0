// Package engine runs the checks of a suite: selection, order, parallelism, confirmation and
// folding are the same for destinations and services. godog executes each scenario; this
// package alone imports it.
//
// What a check is, and what a report says, is package conformance's; what the steps do is
// that of the suites.
package engine
