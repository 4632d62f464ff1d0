// Package pathless keeps godog from starting a program. A package of godog runs
// "go env GOTOOLDIR" when it is initialised, in every program that imports it and for a
// value that only its build command uses: each start of destkit would take longer, and
// write the telemetry of go, on a machine that has go.
//
// Packages are initialised in the order of their paths, each after what it imports. This
// one imports nothing but syscall, so it comes before os/exec, and so before that package
// of godog.
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
