// Package pathless keeps godog from starting a program: one of its packages runs
// "go env GOTOOLDIR" when it is initialised, which takes time and writes the telemetry of go.
//
// Packages are initialised in the order of their paths, each after what it imports. This one
// imports nothing but syscall, so it comes before os/exec, and so before that package.
package pathless

import "syscall"

var path, found = syscall.Getenv("PATH")

func init() {
	if found {
		_ = syscall.Setenv("PATH", "") // godog goes on without the value
	}
}

// End puts PATH back, for the initialisation of a package that imports godog.
func End() {
	if found {
		_ = syscall.Setenv("PATH", path)
	}
}
