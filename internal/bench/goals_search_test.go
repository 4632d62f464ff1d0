package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The door lets so many requests in at once, and what asks for the plan beside.
func TestTheDoorLetsOnlySoManyIn(t *testing.T) {
	var inside, most atomic.Int64
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) < 600 {
			return
		}
		n := inside.Add(1)
		defer inside.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		entered <- struct{}{}
		<-leave
	}))
	defer target.Close()
	door, err := newNarrows(target.URL, 2, time.Microsecond)
	require.NoError(t, err)
	defer door.server.Close()
	post := func(size int) {
		response, err := http.Post(door.url, "application/json", strings.NewReader(strings.Repeat(" ", size)))
		if err == nil {
			response.Body.Close()
		}
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { post(1000) })
	}
	<-entered
	<-entered
	post(10) // both places are taken: it passes beside them
	close(leave)
	all.Wait()
	require.EqualValues(t, 2, most.Load())
}

// A timer that wakes too late must not lower the limit.
func TestAPlaceIsTakenFromWhenItBecameFree(t *testing.T) {
	n := &narrows{places: make(chan time.Time, 1), each: time.Microsecond, next: http.NotFoundHandler()}
	free := time.Now().Add(time.Millisecond)
	n.places <- free
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", 1000)))
	n.ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, free.Add(time.Microsecond), <-n.places)
}
