package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/destkit/destkit/cmd/destkit/internal/terminal"
)

// Bytes that a terminal in raw mode sends for Ctrl-C and Ctrl-D.
const (
	ctrlC = 3
	ctrlD = 4
)

// keyboard gives the keys that are pressed on a terminal.
type keyboard struct {
	file    *os.File // nil without a terminal
	pressed chan byte
	done    chan struct{}
}

// newKeyboard reads keys where both input and output are a terminal.
func newKeyboard(in *os.File, out io.Writer) *keyboard {
	k := &keyboard{pressed: make(chan byte), done: make(chan struct{})}
	if !terminal.Is(out) || !term.IsTerminal(int(in.Fd())) {
		return k
	}
	k.file = in
	go k.read()
	return k
}

// read ends with the input or the program: a read of a terminal cannot be cancelled.
func (k *keyboard) read() {
	buffer := make([]byte, 1)
	for {
		if _, err := k.file.Read(buffer); err != nil {
			return
		}
		select {
		case k.pressed <- buffer[0]:
		case <-k.done:
			return
		}
	}
}

func (k *keyboard) close() { close(k.done) }

// raw makes keys arrive without Enter until the returned function is called. While a
// run is under way the terminal stays as it is, so that Ctrl-C is a signal.
func (k *keyboard) raw() (restore func()) {
	if k.file == nil {
		return func() {}
	}
	state, err := term.MakeRaw(int(k.file.Fd()))
	if err != nil {
		return func() {} // keys then arrive with Enter
	}
	return func() { _ = term.Restore(int(k.file.Fd()), state) }
}
