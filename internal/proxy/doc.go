// Package proxy stands between a caller of a custom destination and its endpoint:
// it passes every byte on, records what went by and lets a passive judge look at it.
//
// A connection of the caller has one connection to the endpoint, and everything on
// it is passed on as it came: order and case of headers, chunks, trailers, a wrong
// length, a reset. Only the Host header is changed. The proxy repeats nothing and
// waits for nothing by itself. Recording and judging happen beside: they never hold
// a call, and what they cannot keep up with is counted as not judged.
//
// Judging is left to conformance, reports to conformance/report, and listening to
// the program.
package proxy
