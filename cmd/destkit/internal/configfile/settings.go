package configfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/yamldoc"
)

// Name is the file that conform, plan and load read where it is in the working folder.
const Name = "destkit.yaml"

// None is the value of --config by which no file is read.
const None = "none"

// Flag describes --config of the commands that read Name.
const Flag = "settings `FILE` (default " + Name + "; none: no file)"

// Settings are what a configuration file has given. The zero value is that of no file.
type Settings struct {
	Fixtures map[string]conformance.Fixture

	file   string
	found  bool // the file is read without having been named
	set    []string
	places places
}

// Load applies the file that --config names, else Name of the working folder.
func Load(cmd *cobra.Command, named string, others ...string) (Settings, error) {
	switch named {
	case None:
		return Settings{}, nil
	case "":
		if _, err := os.Stat(Name); errors.Is(err, fs.ErrNotExist) {
			return Settings{}, nil
		}
		s, err := Apply(cmd, Name, others...)
		s.file, s.found = Name, true
		return s, err
	}
	if _, err := strconv.Atoi(named); err == nil && cmd.Flags().Lookup("connections") != nil {
		return Settings{}, exit.Usagef("-c names a file of settings: for %s connections write --connections %s", named, named)
	}
	return Apply(cmd, named, others...)
}

// Announce prints which file was found, and what it sets: the line comes first, so that
// no setting works unseen.
func (s Settings) Announce(w io.Writer) {
	if !s.found {
		return
	}
	keys := slices.Clone(s.set)
	if len(s.Fixtures) > 0 {
		keys = append(keys, "fixtures")
	}
	what := strings.Join(keys, ", ")
	if what == "" {
		what = "nothing that this command uses"
	}
	foreign.Printf(w, "settings of %s: %s (--config none ignores the file)\n", s.file, what)
}

// Sets reports whether a flag has its value from the file.
func (s Settings) Sets(flag string) bool { return slices.Contains(s.set, flag) }

// places are the places of entries: those of fixtures by their path, such as
// fixtures.contact.name, those that set a flag by its name, such as --timeout.
type places map[string]*yamldoc.Error

// flagName is a flag in a message.
var flagName = regexp.MustCompile(`--[a-z][a-z-]*[a-z]`)

// Placed is err with the place of the entry that it is about, where that is in the file:
// it begins with the path of a fixture, or names first a flag that the file has set.
func (s Settings) Placed(err error) error {
	if err == nil {
		return nil
	}
	if placed := new(yamldoc.Error); errors.As(err, &placed) {
		return err
	}
	text := err.Error()
	path, message, ok := strings.Cut(text, ": ")
	if !ok || s.places[path] == nil {
		path = flagName.FindString(text)
		message = strings.Replace(text, path, strings.TrimPrefix(path, "--"), 1)
	}
	if s.places[path] == nil {
		return err
	}
	at := *s.places[path]
	at.Message = message
	return exit.Usage(&at)
}
