package discover

import (
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/foreign"
)

// A report or a journal is a file that may have been changed. It is trusted only for keys that a
// run of this program makes: they carry the run, in the form of the template, or are in the range
// of the run. The template and a range that the author sets come from the command line, never from
// the file.

// Ownership recognises the keys of one run.
type Ownership struct {
	Run      string
	whole    *regexp.Regexp // as the template has it, and what a check adds to it
	letters  *regexp.Regexp // the form of letters and digits only
	ranged   bool           // the author gave the range of integers
	from, to int64
	keys     *values.Keys
	checks   []string
	most     int               // records of a check
	hashed   map[[16]byte]bool // the form of a UUID; nil until the first query
}

// derivedRun is how a run that was not named calls itself.
var derivedRun = regexp.MustCompile(`^[0-9a-f]{6}$`)

// NewOwnership recognises the keys of a run by the options of the caller. checks
// are the ids of further checks that may have made some.
func NewOwnership(run string, o conformance.Options, checks []string) (*Ownership, error) {
	o = line.WithDefaults(o)
	named := run == o.RunID
	o.RunID = run
	if err := line.Validate(o); err != nil {
		return nil, err
	}
	k, err := write.NewKeys(o)
	if err != nil {
		return nil, err
	}
	switch {
	case run == "":
		return nil, conformance.Usage("the file names no run, so that its keys cannot be told from others")
	case k.Given && !named && !derivedRun.MatchString(run):
		return nil, conformance.Usage("the run %q of the file is not the name of a run: with a key template of your own its keys cannot be told from others", foreign.Clip(run, 40))
	}
	w := &Ownership{Run: run, ranged: o.KeyFrom != 0 || o.KeyTo != 0, from: k.From, to: k.To, keys: k, most: o.MaxRecords}
	w.whole = keyPattern(o.KeyTemplate, run, `[A-Za-z0-9_.-]{1,64}`)
	if !k.Given {
		plain := strings.ToLower(strings.ReplaceAll(o.KeyTemplate, "-", ""))
		w.letters = keyPattern(plain, strings.ToLower(strings.ReplaceAll(run, "-", "")), `[a-z0-9_.]{1,64}`)
	}
	w.checks = slices.Concat([]string{trialCheck.ID, "HOOK-000", line.CleanUpCheck.ID}, checks)
	if cat, err := conformance.LoadCatalogue(conformance.SuiteDestination); err == nil {
		for _, c := range cat.Checks {
			w.checks = append(w.checks, c.ID)
		}
	}
	slices.Sort(w.checks)
	w.checks = slices.Compact(w.checks)
	return w, nil
}

// keyPattern is a template as a pattern. A check may put a space before a key and
// anything behind it.
func keyPattern(template, run, check string) *regexp.Regexp {
	pattern := strings.NewReplacer(
		regexp.QuoteMeta("{run}"), regexp.QuoteMeta(run),
		regexp.QuoteMeta("{check}"), check,
		regexp.QuoteMeta("{n}"), `[0-9]{1,9}`,
	).Replace(regexp.QuoteMeta(template))
	return regexp.MustCompile(`^ ?` + pattern)
}

// Owns reports whether a raw JSON identifier is one that the run makes.
func (w *Ownership) Owns(raw json.RawMessage) bool {
	n, err := wire.Parse(raw)
	return err == nil && w.OwnsNode(n)
}

func (w *Ownership) OwnsNode(n *wire.Node) bool {
	switch n.Type() {
	case wire.Number:
		v, ok := n.Int()
		return ok && (v >= w.from && v <= w.to || w.odd(v))
	case wire.String:
		text := n.Text
		if w.whole.MatchString(text) || w.letters != nil && w.letters.MatchString(text) {
			return true
		}
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return w.odd(v) || w.letters != nil && v >= w.from && v <= w.to
		}
		const uuid = 36 // a check may put something around it
		text = strings.TrimPrefix(text, " ")
		return w.letters != nil && len(text) >= uuid && w.isHashed(text[:uuid])
	}
	return false
}

// odd reports whether a run makes this integer beyond 2^53 where the author gave no range.
func (w *Ownership) odd(v int64) bool {
	if w.ranged || !derivedRun.MatchString(w.Run) {
		return false
	}
	run, _ := strconv.ParseInt(w.Run, 16, 64) // six digits
	first := values.OddKey(run, 0)
	const most = 999 // in a table
	return v > first && v <= values.OddKey(run, most)
}

// isHashed recognises the keys in the form of a UUID by making them again.
func (w *Ownership) isHashed(text string) bool {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != 16 || strings.Count(text, "-") != 4 {
		return false
	}
	if w.hashed == nil {
		w.hashed = map[[16]byte]bool{}
		for _, check := range w.checks {
			before, after, _ := strings.Cut(strings.NewReplacer("{run}", w.Run, "{check}", check).Replace(w.keys.Template), "{n}")
			key := []byte(before)
			for n := range w.most {
				key = append(strconv.AppendInt(key[:len(before)], int64(n+1), 10), after...)
				w.hashed[values.HashOfKey(key)] = true
			}
		}
	}
	return w.hashed[[16]byte(raw)]
}
