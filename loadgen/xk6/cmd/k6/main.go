// Command k6 is k6 with the extension k6/x/destkit.
package main

import (
	"go.k6.io/k6/cmd"

	_ "github.com/destkit/destkit/loadgen/xk6"
)

func main() { cmd.Execute() }
