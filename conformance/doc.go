// Package conformance has the data of a judge of the two sides of the protocol: the
// catalogue of checks, options, results, and the verdict that they come to. Package
// destination judges custom destinations, package service the service that calls them.
//
// The checks are the scenarios of package features. Package internal/engine runs them, the
// same for both suites, and package report writes the [Report], which is data. This package
// knows no simulator, no service, no protocol and no output format.
package conformance
