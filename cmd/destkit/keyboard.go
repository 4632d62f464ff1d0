package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
)

// Bytes that a terminal in raw mode sends for Ctrl-C and Ctrl-D.
const (
	CtrlC = 3
	CtrlD = 4
)

// Keyboard gives the keys that are pressed on a terminal.
type Keyboard struct {
	file    *os.File  // nil without a terminal
	Pressed chan byte // one byte for each key
	done    chan struct{}
}

// NewKeyboard reads keys where both input and output are a terminal.
func NewKeyboard(in *os.File, out io.Writer) *Keyboard {
	k := &Keyboard{Pressed: make(chan byte), done: make(chan struct{})}
	if !command.Is(out) || !term.IsTerminal(int(in.Fd())) {
		return k
	}
	k.file = in
	go k.read()
	return k
}

// Attached reports whether keys can be pressed: there is a terminal.
func (k *Keyboard) Attached() bool { return k.file != nil }

// read ends with the input or the program: a read of a terminal cannot be cancelled.
func (k *Keyboard) read() {
	buffer := make([]byte, 1)
	for {
		if _, err := k.file.Read(buffer); err != nil {
			return
		}
		select {
		case k.Pressed <- buffer[0]:
		case <-k.done:
			return
		}
	}
}

// Close takes no further key.
func (k *Keyboard) Close() { close(k.done) }

// Raw makes keys arrive without Enter until the returned function is called. While a
// run is under way the terminal stays as it is, so that Ctrl-C is a signal.
func (k *Keyboard) Raw() (restore func()) {
	if k.file == nil {
		return func() {}
	}
	state, err := term.MakeRaw(int(k.file.Fd()))
	if err != nil {
		return func() {} // keys then arrive with Enter
	}
	return func() { _ = term.Restore(int(k.file.Fd()), state) }
}
