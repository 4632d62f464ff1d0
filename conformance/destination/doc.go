// Package destination judges a custom destination: it sends what the service would send
// (spec 4.2), looks at what comes back, and says which rules hold, which are broken and
// which cannot be decided without more evidence. [Run] gives a report, [Test] makes each
// check a subtest of Go, [Passive] judges the calls that others make.
//
// It owns the calls, the safety of what it writes, and the evidence; the verdict is that of
// package conformance.
package destination
