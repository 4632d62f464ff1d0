// Package rules judges exchanges with a destination: what was asked, what was answered.
//
// A rule is a pure function of one exchange, or of a sequence of exchanges. The same rules
// are put to the calls of a live run, to what a proxy passes on, and to a recording. A
// scenario of the judge provokes, and the rule judges. This package sends nothing, and knows
// nothing of what must be stored.
package rules
