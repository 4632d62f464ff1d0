package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/destkit/destkit/internal/foreign"
)

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	file, ok := foreign.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Input reports whether in is a terminal: a person can answer.
func Input(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colourful reports whether colours are written to w: on a terminal, and where
// FORCE_COLOR or CLICOLOR_FORCE demands them. --no-color and NO_COLOR forbid them
// everywhere, TERM=dumb and CLICOLOR=0 on a terminal.
func Colourful(w io.Writer, refused bool) bool {
	forced := func(name string) bool {
		value := os.Getenv(name)
		return value != "" && value != "0" && value != "false"
	}
	switch {
	case refused || os.Getenv("NO_COLOR") != "":
		return false
	case forced("FORCE_COLOR") || forced("CLICOLOR_FORCE"):
		return true
	}
	return Is(w) && os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0"
}

// Every is the time between two lines about a command that goes on, where no
// line can be drawn over.
const Every = 10 * time.Second

// GoesOn writes a line every ten seconds that something still goes on, where no line can
// be drawn over, until done is called.
func GoesOn(w io.Writer, quiet bool, what string) (done func()) {
	if quiet || Is(w) {
		return func() {}
	}
	return EveryTenSeconds(w, func(after time.Duration) string { return fmt.Sprintf("%s for %s", what, after) })
}

// EveryTenSeconds writes what say gives for the time since the beginning, until done is
// called.
func EveryTenSeconds(w io.Writer, say func(after time.Duration) string) (done func()) {
	started, ticks := time.Now(), time.NewTicker(Every)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-ticks.C:
			}
			foreign.Println(w, say(time.Since(started).Round(time.Second)))
		}
	}()
	return sync.OnceFunc(func() { ticks.Stop(); close(end); <-ended })
}

// Columns is the width of the terminal behind w, 0 when it is none.
func Columns(w io.Writer) int {
	file, ok := foreign.Raw(w).(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Width is how wide a text is written to w: the columns of a terminal, at most 120,
// and 80 for anything else.
func Width(w io.Writer) int {
	if columns := Columns(w); columns > 0 {
		return min(columns, 120)
	}
	return 80
}
