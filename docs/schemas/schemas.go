// Package schemas holds the JSON Schemas of the files that destkit reads and writes,
// for editors and other programs. A test of cmd/destkit makes them from the Go types
// and flags that read and write these files.
package schemas

import "embed"

// FS has one file for each schema, NAME.json.
//
//go:embed *.json
var FS embed.FS
