package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSilentConnection(t *testing.T) {
	silent := &peers{start: time.Now().Add(-time.Hour)}
	silent.heard.Store(1)
	first := silent.generation()
	require.NotEqual(t, first, silent.generation())
	require.False(t, silent.hears())
}

// Who is too slow is told that there was too much, and goes on.
func TestSlowListener(t *testing.T) {
	n, closed := newPeers(nil, nil), make(chan struct{})
	said, reached, goOn := make(chan Notice, 2*subscriberRoom), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	calls := 0
	go func() {
		ended <- n.listen(ctx, closed, func(topic, text string) {
			if calls++; calls == 2 {
				close(reached)
				<-goOn
			}
			said <- Notice{topic, text}
		})
	}()
	require.Equal(t, Notice{}, <-said)
	n.tell(Notice{"first", ""})
	<-reached
	for i := range subscriberRoom + 1 {
		n.tell(Notice{"n", fmt.Sprint(i)})
	}
	close(goOn)
	require.Equal(t, Notice{"first", ""}, <-said)
	require.Equal(t, Notice{}, <-said)
	n.tell(Notice{"after", ""})
	require.Equal(t, Notice{"after", ""}, <-said)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
