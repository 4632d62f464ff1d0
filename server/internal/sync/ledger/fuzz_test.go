package ledger

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLog reads any bytes as a log, and as a frame whose checksums are right:
// a part that is believed once is believed again, and going on works.
func FuzzLog(f *testing.F) {
	s := open(f, small(Options{}, nil))
	require.NoError(f, history(s.Sync(1), func(string) {}))
	for run, name := range []string{"run-1.log", "run-2.log"} {
		log := contentOf(f, s.Sync(1), name)
		f.Add(log, false)
		f.Add(log[:len(log)-3], false)
		l, err := readLog(&file{mem: &content{data: log}}, int64(len(log)), int64(run)+1)
		require.NoError(f, err)
		payload, err := l.next()
		require.NoError(f, err)
		f.Add(bytes.Clone(payload), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		l := open(t, small(Options{}, nil))
		s := l.Sync(1)
		if sealed && len(data) > 0 {
			log, err := startFrame(beginning{Run: 1})
			require.NoError(t, err)
			frame := append(make([]byte, frameHead), data...)
			require.NoError(t, sealFrame(frame, 1))
			data = append(log, frame...)
		}
		s.files.files = map[string]*content{}
		change(t, s, logName(1, openSuffix), data)
		_, found, recordsErr := s.Records(1, Filter{}, 0, 10)
		r := begin(t, s, 1, Meta{})
		meta := metaOf(t, s)
		require.Equal(t, errors.Is(recordsErr, ErrDamaged), meta.Damaged)
		believed := whole(t, s, 1)
		if recordsErr == nil {
			require.LessOrEqual(t, found, int64(len(believed)))
		}
		require.NoError(t, r.Append(Batch{Records: []Record{ack("1", 1)}}))
		require.NoError(t, r.Close())
		r = begin(t, s, 1, Meta{})
		require.Equal(t, append(believed, ack("1", 1)), whole(t, s, 1))
		require.NoError(t, r.Finish(meta))
	})
}

// FuzzState reads any bytes as a state, and as a block whose checksums are
// right: keys ascend or it is damaged, and entries that were read are written
// unchanged.
func FuzzState(f *testing.F) {
	l := open(f, small(Options{}, nil))
	require.NoError(f, history(l.Sync(1), func(string) {}))
	state := contentOf(f, l.Sync(1), stateFile)
	f.Add(state, false)
	f.Add(state[:len(state)-5], false)
	r, _, err := readState(&file{mem: &content{data: state}})
	require.NoError(f, err)
	require.NoError(f, r.load())
	f.Add(bytes.Clone(r.block), true)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		files := &folder{}
		if whole {
			to, err := files.create("sealed")
			require.NoError(t, err)
			w := &sortedWriter{f: to, limit: blockSize}
			require.NoError(t, w.start())
			w.block = append(make([]byte, blockHead), data...)
			require.NoError(t, w.finish(storedMeta{}))
			data = files.files["sealed"].data
		}
		items, err := readAll(data)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		to, err := files.create("again")
		require.NoError(t, err)
		w := &sortedWriter{f: to, limit: 100}
		require.NoError(t, w.start())
		for i := range items {
			if i > 0 {
				require.Negative(t, bytes.Compare(items[i-1].key, items[i].key))
			}
			require.NoError(t, w.add(&items[i]))
		}
		require.NoError(t, w.finish(storedMeta{}))
		again, err := readAll(files.files["again"].data)
		require.NoError(t, err)
		require.Equal(t, items, again)
	})
}

func readAll(data []byte) (all []item, err error) {
	r, _, err := readState(&file{mem: &content{data: data}})
	if err != nil {
		return nil, err
	}
	var it item
	for {
		if err := r.next(&it); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		one := it
		one.key, one.row = bytes.Clone(it.key), bytes.Clone(it.row) // the next one takes their place
		all = append(all, one)
	}
}

// FuzzMeta reads any bytes as a meta file.
func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"run":3,"rows":4,"generation":1}`), true)
	f.Add([]byte(`{"mapping":"00"}`), true)
	f.Add([]byte(`null`), false)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if whole {
			data = sealed(data, 0)
		}
		_, err := readMeta(&file{mem: &content{data: data}})
		require.True(t, err == nil || errors.Is(err, ErrDamaged))
	})
}
