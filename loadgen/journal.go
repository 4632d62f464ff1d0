package loadgen

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/wholefile"
)

// Journal holds the keys that a run may have written. It is on disk before they
// are sent, and names more than were used while the run goes on.
type Journal struct {
	Load   string        `json:"load"` // the version of this format
	Run    string        `json:"run"`
	Target string        `json:"target"`
	Keys   []WrittenKeys `json:"keys"`
}

// journalVersion is in every journal.
const journalVersion = "1"

// reserve is by how many keys the journal is ahead of the sent ones.
const reserve = 10_000_000

// journalFile is the journal of a run on disk; nil: there is none.
type journalFile struct {
	path, run, target string
	keys              []WrittenKeys
	reserved          []int64
}

// begin writes the first reservation.
func (j *journalFile) begin(keys []WrittenKeys, p *plan) error {
	if j == nil {
		return nil
	}
	j.keys = keys
	j.reserved = make([]int64, len(p.grounds))
	return j.ahead(p)
}

// advance reserves more once half of the reserved keys are used. A run that
// outruns ten million keys between two looks would have to send faster than any
// machine can.
func (j *journalFile) advance(p *plan) {
	if j == nil {
		return
	}
	for i, g := range p.grounds {
		if g.used.Load() > j.reserved[i]-reserve/2 {
			_ = j.ahead(p) // shows again at the end, where it is reported
			return
		}
	}
}

func (j *journalFile) ahead(p *plan) error {
	for i, g := range p.grounds {
		j.reserved[i] = min(g.used.Load()+reserve, g.keys)
		j.keys[i].Count = j.reserved[i]
	}
	return j.write(j.keys)
}

// end writes the keys that were really used, or removes the journal where nothing is left.
func (j *journalFile) end(r *Result) error {
	if j == nil {
		return nil
	}
	if r.Cleanup != nil && r.Cleanup.Left == 0 {
		if err := os.Remove(j.path); err != nil {
			return fmt.Errorf("remove journal: %w", err)
		}
		return nil
	}
	return j.write(r.Keys)
}

// write replaces the file at once: a journal that is half written is none.
func (j *journalFile) write(keys []WrittenKeys) error {
	text, err := json.MarshalIndent(Journal{Load: journalVersion, Run: j.run, Target: j.target, Keys: keys}, "", "  ")
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	err = wholefile.WritePrivate(j.path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// decodeKept fills v from what a load has left: its journal or its result.
func decodeKept(text []byte, v any) error {
	var head struct {
		Load json.RawMessage `json:"load"` // in a journal its version, in a result an object
	}
	file := rawjson.File{Expected: "the journal or the JSON result of a load", Version: schemaVersion}
	err := file.Decode(text, &head)
	if err == nil {
		reads, _ := strconv.Atoi(journalVersion)
		err = rawjson.Newer("load", head.Load, reads)
	}
	if err == nil {
		err = file.Decode(text, v)
	}
	return err
}

// ReadTarget reads the URL of the endpoint out of a journal or a result as JSON: ""
// where it replaces one that holds a secret.
func ReadTarget(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read journal: %w", err)
	}
	var j struct {
		Target json.RawMessage `json:"target"`
	}
	if err := decodeKept(text, &j); err != nil {
		return "", fmt.Errorf("read journal %s: %w", path, err)
	}
	var url string
	if json.Unmarshal(j.Target, &url) == nil { // of a journal
		return url, nil
	}
	var info TargetInfo // of a result
	if err := json.Unmarshal(j.Target, &info); err != nil {
		return "", fmt.Errorf("read journal %s: it names no target", path)
	}
	return info.Address, nil
}

// ReadKeys reads the keys out of a journal or out of a result as JSON.
func ReadKeys(path string) ([]WrittenKeys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var j struct { // of a journal and of a result
		Keys []WrittenKeys `json:"keys"`
	}
	if err := decodeKept(text, &j); err != nil {
		return nil, fmt.Errorf("read journal %s: %w", path, err)
	}
	if len(j.Keys) == 0 {
		return nil, fmt.Errorf("read journal %s: it names no keys; give the journal or the JSON result of a load", path)
	}
	for _, k := range j.Keys {
		if k.Object == "" || k.Field == "" || k.Count < 0 {
			return nil, fmt.Errorf("read journal %s: an entry has no object, no field or a negative count", path)
		}
	}
	return j.Keys, nil
}
