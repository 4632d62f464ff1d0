//go:build !unix

package main

import (
	"context"
	"errors"
	"time"
)

func (s *server) halt(context.Context, time.Duration) error {
	return errors.New("a process cannot be stopped for a while on this system")
}
