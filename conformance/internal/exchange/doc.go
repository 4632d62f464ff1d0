// Package exchange is one call and its reply as bytes, text and tree.
//
// It knows no rule, and nothing of what a record means: package rules and the checks do.
package exchange
