package rest

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// readyPatience bounds one readiness check: probes have a deadline of a second or
// a few.
const readyPatience = 2 * time.Second

// readyz reports to balancers and supervisors whether this process should get
// calls. Unlike /healthz it checks dependencies: one that waits for its database
// is alive, and starting it again would not help.
func (f *Front) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyPatience)
	defer cancel()
	answer := struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{Status: "ready"}
	code := http.StatusOK
	if err := f.Ready(ctx); err != nil {
		code, answer.Status, answer.Reason = http.StatusServiceUnavailable, "unready", err.Error()
		if errors.Unwrap(err) != nil { // where the database is, is nothing for everybody
			answer.Reason = problem.Of(err).Message
			f.Log.Debug("the process is not ready", "error", err)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	text, _ := rawjson.Encode(answer) // two texts can always be written
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// leastRoom is what the data directory must take, in bytes: less than one write of the
// database or of a ledger may need.
const leastRoom = 64 << 10

// Writable tries the data directory with a file that is gone at once; "" is in memory. The
// error does not say where the directory is: that is nothing for everybody.
func Writable(dir string) error {
	if dir == "" {
		return nil
	}
	f, err := os.CreateTemp(dir, "ready-*.unfinished") // the next start removes what a kill leaves
	if err == nil {
		_, err = f.Write(make([]byte, leastRoom))
		if err == nil { // a disk that fails may say so only here
			err = f.Sync()
		}
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	switch path, found := errors.AsType[*fs.PathError](err); {
	case err == nil:
		return nil
	case store.Full(err):
		return errors.New("the disk of the data directory is full: make room; what was acknowledged is kept")
	case found:
		err = path.Err
	}
	return errors.New("the data directory cannot be written: " + err.Error())
}
