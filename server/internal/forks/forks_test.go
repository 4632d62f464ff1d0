package forks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/problem"
)

// service stands for what is forked.
type service struct {
	name  string
	ended bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, s.name+" "+r.URL.Path)
}

// newForks has room for so many; more changes what is made.
func newForks(room int64, more func(*Parts[*service])) *Forks[*service] {
	p := Parts[*service]{
		Make: func(_ context.Context, w Wanted, _ io.Reader) (*service, error) {
			return &service{name: w.Name}, nil
		},
		End: func(s *service) error { s.ended = true; return nil },
		Refuse: func(w http.ResponseWriter, _ *http.Request, f *problem.Failure) {
			http.Error(w, f.Message, f.Code)
		},
		Most: int(room), Room: new(atomic.Int64),
	}
	p.Room.Store(room)
	if more != nil {
		more(&p)
	}
	return New(p)
}

// TestRoomForForks: what could not be made leaves neither its name nor its place taken.
func TestRoomForForks(t *testing.T) {
	failure := errors.New("no memory")
	var fail error
	var numbers []int64
	f := newForks(1, func(p *Parts[*service]) {
		made := p.Make
		p.Make = func(ctx context.Context, w Wanted, r io.Reader) (*service, error) {
			numbers = append(numbers, w.Number)
			if fail != nil {
				return nil, fail
			}
			return made(ctx, w, r)
		}
	})
	fail = failure
	fork, err := f.Fork(t.Context(), "a", "", nil)
	require.ErrorIs(t, err, failure)
	require.Nil(t, fork)
	fail = nil
	fork, err = f.Fork(t.Context(), "a", "", nil)
	require.NoError(t, err)
	require.Same(t, fork, f.Get("a"))
	for name, want := range map[string]string{"a": "there is a fork a already", "b": "there are 1 forks already", "A b": "must be 1 to 63"} {
		_, err = f.Fork(t.Context(), name, "", nil)
		var refused *problem.Failure
		require.ErrorAs(t, err, &refused, name)
		require.Contains(t, refused.Message+refused.Error(), want, name)
	}
	require.Equal(t, []int64{1, 2}, numbers, "each has its number, also one that was not made")
	require.Zero(t, f.Room.Load())
}

// TestForksEndWithTheirService, those included that are being made at that moment.
func TestForksEndWithTheirService(t *testing.T) {
	var f *Forks[*service]
	late := &service{name: "late"}
	f = newForks(2, func(p *Parts[*service]) {
		made := p.Make
		p.Make = func(ctx context.Context, w Wanted, r io.Reader) (*service, error) {
			if w.Name != late.name {
				return made(ctx, w, r)
			}
			f.Close()
			return late, nil
		}
	})
	open, err := f.Fork(t.Context(), "open", "", nil)
	require.NoError(t, err)
	_, err = f.Fork(t.Context(), late.name, "", nil)
	require.ErrorContains(t, err, "about to stop")
	require.True(t, open.ended)
	require.True(t, late.ended)
	require.EqualValues(t, 2, f.Room.Load())
	_, err = f.Fork(t.Context(), "after", "", nil)
	require.ErrorContains(t, err, "about to stop")
}

// TestForksAreServedBelowTheirName, as if each were at the root.
func TestForksAreServedBelowTheirName(t *testing.T) {
	f := newForks(2, nil)
	_, err := f.Fork(t.Context(), "a", "", nil)
	require.NoError(t, err)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/_forks/a/api/v1/syncs": {200, "a /api/v1/syncs"},
		"/_forks/b/api/v1/syncs": {404, "there is no fork \"b\"\n"},
		"/_forks/":               {404, "there is no fork \"\"\n"},
	} {
		got := httptest.NewRecorder()
		f.ServeHTTP(got, httptest.NewRequest("GET", path, nil))
		require.Equal(t, want.code, got.Code, path)
		require.Equal(t, want.text, got.Body.String(), path)
	}
}
