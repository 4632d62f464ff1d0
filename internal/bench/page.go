package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// What stands between them is written; everything else of the page is kept.
const (
	beginMark = "<!-- measured: written by make bench UPDATE=1 -->"
	endMark   = "<!-- end of what is written -->"
)

// write puts the table into a page, between the marks.
func (r report) write(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("update the page: %w", err)
	}
	page, err := between(string(old), r.page(time.Now()))
	if err != nil {
		return fmt.Errorf("update %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		return fmt.Errorf("update the page: %w", err)
	}
	return nil
}

// between replaces what stands between the marks.
func between(page, text string) (string, error) {
	before, rest, begins := strings.Cut(page, beginMark)
	_, behind, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return "", fmt.Errorf("the lines %q and %q, between which the table is written, are not in it", beginMark, endMark)
	}
	return before + beginMark + "\n\n" + strings.TrimSpace(text) + "\n\n" + endMark + behind, nil
}

// page is what is written.
func (r report) page(now time.Time) string {
	return fmt.Sprintf("Measured on %s in %s, in one session: medians of %d runs of %d s each, contenders alternating.\n%s.\n%s\n\n%s",
		now.UTC().Format("2 January 2006"), r.took.Round(time.Second), r.options.rounds, r.options.seconds, r.machine.text(), r.sum(), r.table()) + r.peers()
}

// peers says what was compared with.
func (r report) peers() string {
	if len(r.versions) == 0 {
		return ""
	}
	return "\nPeers: " + strings.Join(r.versions, ", ") + ".\n"
}
