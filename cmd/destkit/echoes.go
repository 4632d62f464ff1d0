package main

import "time"

// An endpoint may write a file a moment after each call. Such a file would start runs
// without end, so one that changed within echoWindow of the end of echoRuns runs in a
// row, all with the same results, starts none; a later change of it counts as ever.
const (
	echoWindow = 3 * time.Second
	EchoRuns   = 3
)

// DuringRuns holds the files that changed while runs went on that followed each other for that
// reason. A change may be the work of the run itself: one more run takes it into account, and
// the same file starts no other. A file that its owner saves meanwhile is another one.
type DuringRuns struct {
	names map[string]bool
	runs  int
}

// Fresh returns the files whose change starts one more run; after echoRuns such runs none
// does, for an endpoint that writes a new file each time.
func (d *DuringRuns) Fresh(changed []string) (starting []string) {
	if d.runs++; d.runs > EchoRuns {
		return nil
	}
	if d.names == nil {
		d.names = map[string]bool{}
	}
	for _, name := range changed {
		if !d.names[name] {
			starting = append(starting, name)
		}
		d.names[name] = true
	}
	return starting
}

// Echoes counts, by file, the runs in a row after which it changed at once.
type Echoes map[string]int

// Filter returns the files whose change starts a run, and those that have just been
// found to be echoes. since is the time from the end of the last run.
func (e *Echoes) Filter(changed []string, since time.Duration) (starting, found []string) {
	if *e == nil {
		*e = Echoes{}
	}
	if since > echoWindow {
		for _, name := range changed {
			delete(*e, name)
		}
		return changed, nil
	}
	for _, name := range changed {
		switch (*e)[name]++; {
		case (*e)[name] <= EchoRuns:
			starting = append(starting, name)
		case (*e)[name] == EchoRuns+1:
			found = append(found, name)
		}
	}
	return starting, found
}
