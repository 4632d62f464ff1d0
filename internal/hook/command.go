package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// drain is how long the output of a command may stay open after it ended: a
// restart hook may leave a server behind that inherited it.
const drain = time.Second

// run starts the command without a shell, in its own process group and with
// the inherited environment, and returns its output. On timeout the whole
// group is killed and the command is waited for, so nothing is left behind.
func run(parent context.Context, timeout time.Duration, name string, command []string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	stdout := &output{limit: MaxReply, over: cancel}
	stderr := &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), stdout, stderr
	cmd.WaitDelay = drain
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, interrupted(parent, name, timeout, "")
		}
		return nil, &Error{Kind: KindSetup, Hook: name, Message: "cannot be started", Err: err,
			Fix: "give the path of the program, and make it executable"}
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case stdout.full:
		return nil, tooLarge(name)
	// A command that finished in time counts, also when its output is still
	// held open by a process that it left behind.
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return stdout.kept.Bytes(), nil
	case ctx.Err() != nil:
		return nil, interrupted(parent, name, timeout, stderr.text())
	case errors.As(err, &exit):
		return nil, &Error{
			Kind: KindExit, Hook: name,
			Message: "ended with " + describe(exit), Detail: stderr.text(),
			Fix: "run it by hand with the question on standard input: it should print its answer and end with 0",
		}
	}
	return nil, &Error{Kind: KindExit, Hook: name, Message: "failed", Detail: stderr.text(), Err: err}
}

func describe(exit *exec.ExitError) string {
	if code := exit.ExitCode(); code >= 0 {
		return fmt.Sprintf("exit status %d", code)
	}
	return exit.String() // signal: killed
}

// output keeps what a command prints and ends the command at the limit.
type output struct {
	kept  bytes.Buffer
	limit int
	full  bool
	over  func()
}

func (o *output) Write(p []byte) (int, error) {
	if o.kept.Len()+len(p) > o.limit {
		o.full = true
		o.over()
		return 0, errors.New("reply too large")
	}
	return o.kept.Write(p)
}

// tail keeps the end of standard error.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-2*maxDetail):]...)
	if extra := len(t.kept) - 2*maxDetail; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// text gives the last lines, at most ten and at most maxDetail bytes.
func (t *tail) text() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD")), "\n")
	lines = lines[max(0, len(lines)-10):]
	text := strings.Join(lines, "\n")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[len(text)-maxDetail:], "")
	}
	return text
}
