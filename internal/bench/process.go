package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// workshop is where it is measured: the folder of the repository, a folder for
// what is written, the program and the peers.
type workshop struct {
	ctx     context.Context
	options options
	root    string
	folder  string // removed at the end
	program string
	tools   map[string]string // the peers that are there, by name
	began   time.Time
}

func newWorkshop(ctx context.Context, o options) (*workshop, error) {
	w := &workshop{ctx: ctx, options: o, began: time.Now()}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	w.root = strings.TrimSuffix(strings.TrimSpace(string(out)), "/go.mod")
	if w.folder, err = os.MkdirTemp("", "destkit-bench-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	w.findPeers()
	// As make build makes it: what is measured is what is shipped.
	w.say("building the program")
	w.program = w.folder + "/destkit"
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", w.program, "./cmd/destkit")
	build.Dir, build.Env = w.root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the program: %w\n%s", err, text), os.RemoveAll(w.folder))
	}
	return w, nil
}

func (w *workshop) close() { _ = os.RemoveAll(w.folder) }

// say reports progress.
func (w *workshop) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// ended is a process that has done its work.
type ended struct {
	text []byte // of both outputs
	cpu  float64 // seconds of the processor
}

// finish runs a command to its end. An exit status other than 0 is an error that
// shows the end of what it said.
func (w *workshop) finish(env []string, name string, args ...string) (ended, error) {
	cmd := exec.CommandContext(w.ctx, name, args...)
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	e := ended{text: text.Bytes()}
	if cmd.ProcessState != nil {
		e.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	if err != nil {
		return e, fmt.Errorf("run %s: %w\n%s", name, err, tail(e.text))
	}
	return e, nil
}

// tail is the end of a text, for a message.
func tail(text []byte) string {
	const most = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// server is a process that listens.
type server struct {
	url string
	cmd *exec.Cmd
}

// listen starts a command that says on its first line where it listens.
func (w *workshop) listen(name string, args ...string) (*server, error) {
	cmd := exec.CommandContext(w.ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	s := &server{cmd: cmd}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if err != nil || !ok {
		s.stop()
		return nil, fmt.Errorf("start %s: its first line is %q", name, line)
	}
	s.url = url
	// A pipe that is not read would stop it one day.
	go func() { _, _ = reader.WriteTo(new(bytes.Buffer)) }()
	return s, nil
}

// stop ends the process and waits for it.
func (s *server) stop() {
	// Nothing of it is kept, so there is nothing to wait for.
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
