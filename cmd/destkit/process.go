package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

// Times of the command that runs the endpoint.
const (
	startTime = 30 * time.Second      // until it answers
	stopTime  = 5 * time.Second       // from the wish to end to the end
	pollTime  = 50 * time.Millisecond // between two questions
	askTime   = 5 * time.Second       // for one question
	lastLines = 10                    // of its output, when it does not start
	tailBytes = 8 << 10               // that are read for them
	logPrefix = "destkit-exec-*.log"  // of the file of its output
)

// Process is the command that runs the endpoint.
type Process struct {
	words  []string
	url    string
	log    *os.File
	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd has ended
	client *http.Client
}

// NewProcess reads the command and opens the file of its output.
func NewProcess(line, url string) (*Process, error) {
	words, err := command.Split(line)
	if err != nil {
		return nil, exit.Usagef("--exec: %w", err)
	}
	if len(words) == 0 {
		return nil, exit.Usagef("--exec is empty: give a command such as 'node server.js'")
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, exit.Usagef("--exec: %w; a shell is started with sh -c '…'", err)
	}
	file, err := os.CreateTemp("", logPrefix)
	if err != nil {
		return nil, exit.Untested(fmt.Errorf("open the file for the output of --exec: %w", err))
	}
	// This checks only whether something answers; the judge looks at certificates.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return &Process{words: words, url: url, log: file, client: &http.Client{
		Transport: transport, Timeout: askTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Output is the name of the file that holds the output of the command.
func (c *Process) Output() string { return c.log.Name() }

// Close ends the command and removes the file of its output.
func (c *Process) Close() {
	c.stop()
	_ = c.log.Close()
	_ = os.Remove(c.log.Name())
}

// Restart ends the command, starts it again and waits until the URL answers.
func (c *Process) Restart(ctx context.Context) error {
	c.stop()
	if c.answers(ctx) {
		return errors.New("something answers at the URL already: end it, or leave --exec out")
	}
	if err := c.log.Truncate(0); err != nil {
		return fmt.Errorf("empty the output of --exec: %w", err)
	}
	if _, err := c.log.Seek(0, 0); err != nil {
		return fmt.Errorf("empty the output of --exec: %w", err)
	}
	cmd := exec.Command(c.words[0], c.words[1:]...)
	cmd.Stdout, cmd.Stderr = c.log, c.log
	leadGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start --exec: %w", err)
	}
	c.cmd, c.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}(c.ended)
	return c.ready(ctx)
}

// ready waits until the URL answers.
func (c *Process) ready(ctx context.Context) error {
	limit := time.NewTimer(startTime)
	defer limit.Stop()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		if c.answers(ctx) {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ended:
			return fmt.Errorf("the command of --exec ended before the URL answered: %s%s", c.cmd.ProcessState, c.tail())
		case <-limit.C:
			return fmt.Errorf("the URL did not answer within %s of the start of --exec%s", startTime, c.tail())
		}
	}
}

// answers reports whether the URL answers with anything.
func (c *Process) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return false
	}
	response, err := c.client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}

// stop ends the command and its children.
func (c *Process) stop() {
	if c.cmd == nil {
		return
	}
	select {
	case <-c.ended:
	default:
		endGroup(c.cmd)
		limit := time.NewTimer(stopTime)
		defer limit.Stop()
		select {
		case <-c.ended:
		case <-limit.C:
		}
	}
	killGroup(c.cmd)
	<-c.ended
	c.cmd = nil
}

// tail is the end of what the command has printed, for a message.
func (c *Process) tail() string {
	info, err := c.log.Stat()
	if err != nil || info.Size() == 0 {
		return "; it printed nothing"
	}
	text := make([]byte, min(info.Size(), tailBytes))
	if _, err := c.log.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return "; see " + c.log.Name()
	}
	lines := foreign.Block(strings.TrimRight(string(text), "\n"))
	return "; its last lines:\n  " + strings.Join(lines[max(0, len(lines)-lastLines):], "\n  ")
}
