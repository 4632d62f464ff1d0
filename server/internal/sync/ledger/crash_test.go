package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// The test program is also the process that is killed.
const childEnv = "DESTKIT_LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	text := os.Getenv(childEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	dir, crash, _ := strings.Cut(text, "\n")
	fmt.Println("end", live(dir, crash))
	os.Exit(0)
}

// live is the history of a process that dies on the way.
func live(dir, crash string) error {
	point, nth, _ := strings.Cut(crash, ":")
	left, _ := strconv.Atoi(nth)
	l, err := Open(small(Options{Dir: dir}, func(at string) {
		if at == point {
			if left--; left == 0 {
				die()
			}
		}
	}))
	if err != nil {
		return err
	}
	return history(l.Sync(1), func(line string) { fmt.Println(line) })
}

// die is kill -9: nothing of the process runs any more.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// small makes every index and block so small that all of their ways are gone.
func small(o Options, crash func(string)) Options {
	o.Crash, o.indexItems, o.indexFan, o.block = crash, 7, 2, 64
	return o
}

// The history: three runs over the same keys, with refusals that are sent again
// in the run, deletes, and invalid rows.
const historyRuns, historyBatches = 3, 5

func historyBatch(run, batch int) Batch {
	b := Batch{Operation: "upsert", StartedAt: time.UnixMicro(1).UTC(), CompletedAt: time.UnixMicro(2).UTC(), Skipped: 1}
	for i := range 6 {
		n := batch*4 + i // the last two are those of the next batch again
		r := Record{Key: strconv.AppendInt(nil, int64(n), 10), Print: Fingerprint{byte(run), byte(n)}, Verdict: Acknowledged}
		switch {
		case (n+run)%5 == 0 && i >= 4, (n+run)%7 == 0:
			r.Verdict, r.Message = Rejected, "no"
		case run == 2 && n%3 == 0:
			r.Delete, r.Print = true, Fingerprint{}
		}
		b.Records = append(b.Records, r)
	}
	b.Records = append(b.Records, Record{Verdict: Invalid, Message: "NULL"})
	return b
}

// history goes on where the ledger stopped, as a service does: acknowledged
// records are not sent again.
func history(s *Sync, say func(string)) error {
	meta, err := s.Meta()
	if err != nil {
		return err
	}
	begun, err := s.Runs()
	if err != nil {
		return err
	}
	for run := max(1, len(begun)); run <= historyRuns; run++ {
		r, err := s.Begin(int64(run), meta)
		if err != nil {
			return err
		}
		for batch := range historyBatches {
			b := historyBatch(run, batch)
			b.Records = slices.DeleteFunc(b.Records, func(record Record) bool {
				verdict, _, ok := r.Last(record.Key)
				return r.Resumed() && len(record.Key) > 0 && ok && verdict == Acknowledged
			})
			if err := r.Append(b); err != nil {
				return err
			}
			told, err := json.Marshal(b.Records)
			if err != nil {
				return err
			}
			say(fmt.Sprintf("acked %d %s", run, told))
		}
		meta.Mapping = Fingerprint{byte(run)}
		if err := r.Finish(meta); err != nil {
			return err
		}
		say(fmt.Sprint("finished ", run))
	}
	return nil
}

// child runs the history until it ends or dies, and returns its output.
func child(t *testing.T, dir, crash string) (lines []string, died bool) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(program)
	c.Env = append(os.Environ(), childEnv+"="+dir+"\n"+crash)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	err = c.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
		return lines, true
	}
	require.NoError(t, err)
	return lines, false
}

// After kill -9 at each point, each time that it is passed: all that was
// acknowledged is there, the state is the old or the new one, and going on
// ends where a history without a kill ends.
func TestKilledAtEachPoint(t *testing.T) {
	matrixtest.Long(t)
	want := undisturbed(t)
	for _, point := range CrashPoints() {
		t.Run(point, func(t *testing.T) {
			times := 0
			for step := 1; ; step += stride(point) {
				o := onDisk.empty(t)
				lines, died := child(t, o.Dir, fmt.Sprint(point, ":", step))
				if !died {
					require.Equal(t, "end <nil>", lines[len(lines)-1])
					break
				}
				times++
				requireKept(t, o, lines)
				lines, died = child(t, o.Dir, "")
				require.False(t, died)
				require.Equal(t, "end <nil>", lines[len(lines)-1])
				requireSame(t, want, o)
			}
			require.Positive(t, times, "the point is never passed")
		})
	}
}

// stride leaves some of the many batches and blocks out in a short test.
func stride(point string) int {
	if testing.Short() && (strings.HasSuffix(point, "append") || point == MidMerge) {
		return 4
	}
	return 1
}

// outcomes must not depend on a kill.
type outcomes struct {
	state []Entry
	meta  Meta
	runs  []Counters
}

func undisturbed(t *testing.T) outcomes {
	l := open(t, small(Options{}, nil))
	require.NoError(t, history(l.Sync(1), func(string) {}))
	return outcomesOf(t, l)
}

func outcomesOf(t *testing.T, l *Ledger) outcomes {
	s := l.Sync(1)
	o := outcomes{state: scan(t, s), meta: metaOf(t, s)}
	for run := range int64(historyRuns) {
		var c Counters
		for verdict, n := range map[Verdict]*int64{Acknowledged: &c.Updated, Rejected: &c.Failed, Invalid: &c.Invalid} {
			_, total, err := s.Records(run+1, Filter{Verdict: verdict}, 0, 0)
			require.NoError(t, err)
			*n = total
		}
		o.runs = append(o.runs, c)
	}
	return o
}

func requireSame(t *testing.T, want outcomes, o Options) {
	t.Helper()
	l := open(t, small(o, nil))
	require.Equal(t, want, outcomesOf(t, l))
	names, err := l.Sync(1).files.names()
	require.NoError(t, err)
	require.Equal(t, []string{"run-1.log", "run-2.log", "run-3.log", "state"}, names)
}

// requireKept looks at the books before anybody goes on with them.
func requireKept(t *testing.T, o Options, lines []string) {
	t.Helper()
	l := open(t, small(o, nil))
	s := l.Sync(1)
	told := map[int64][]Record{}
	var finished int64
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		number, text, _ := strings.Cut(rest, " ")
		run, err := strconv.ParseInt(number, 10, 64)
		require.NoError(t, err)
		if word == "finished" {
			finished = run
			continue
		}
		var records []Record
		require.NoError(t, json.Unmarshal([]byte(text), &records))
		told[run] = append(told[run], records...)
	}
	for run, records := range told {
		logged := whole(t, s, run)
		require.GreaterOrEqual(t, len(logged), len(records))
		require.LessOrEqual(t, len(logged), len(records)+len(historyBatch(1, 0).Records))
		require.Equal(t, records, logged[:len(records)])
		if more := len(logged) - len(records); more > 0 {
			require.Len(t, historyBatch(int(run), 0).Records, more, "a batch is there as a whole or not at all")
		}
	}
	meta := metaOf(t, s)
	require.False(t, meta.Damaged, meta.Reason)
	require.GreaterOrEqual(t, meta.Run, finished)
	require.LessOrEqual(t, meta.Run, finished+1)
	for _, e := range scan(t, s) {
		if e.Known {
			require.LessOrEqual(t, int64(e.Print[0]), meta.Run)
		}
	}
}

// whole reads every record of a log, also those that were replaced.
func whole(t *testing.T, s *Sync, run int64) (all []Record) {
	require.NoError(t, s.withLog(run, func(log runLog) error {
		l, err := readLog(log.f, log.end, run)
		if err != nil {
			return err
		}
		return l.each(nil, func(r *logged) error { all = append(all, r.clone()); return nil }, nil)
	}))
	return all
}

// A kill in the middle of a restore leaves the new books, never a mixture.
func TestKilledWhileRestoring(t *testing.T) {
	o := onDisk.empty(t)
	l := open(t, small(o, nil))
	require.NoError(t, history(l.Sync(1), func(string) {}))
	var archive strings.Builder
	require.NoError(t, l.Sync(1).Snapshot(&archive))
	want := outcomesOf(t, l)
	require.NoError(t, l.Sync(1).Forget())
	r := begin(t, l.Sync(1), 9, Meta{})
	require.NoError(t, r.Close())

	stopped := errors.New("stopped")
	l = open(t, small(o, func(string) { panic(stopped) }))
	require.PanicsWithError(t, stopped.Error(), func() { _ = l.Sync(1).Restore(strings.NewReader(archive.String())) })
	l = open(t, small(o, nil))
	require.Equal(t, want, outcomesOf(t, l))
}
