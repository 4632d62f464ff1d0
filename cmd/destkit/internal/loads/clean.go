package loads

import (
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// cleanCommand is the command that deletes what a load has left, ready to be pasted
// where it was started; "" where nothing is left, or nothing can be named.
func (l *loading) cleanCommand(cmd *cobra.Command, r *loadgen.Result) string {
	if r.Cleanup != nil && r.Cleanup.Left == 0 {
		return ""
	}
	words := []string{"destkit load clean"}
	if address := l.options.Target.URL; plainURL(address) {
		words = append(words, foreign.ShellWord(address))
	} else if os.Getenv(command.URLVariable) != address {
		words = append(words, `"$`+command.URLVariable+`"`) // the caller has to set it: no line shows a secret
	}
	objects := 0
	words = append(words, "--run", r.Load.Run)
	for _, k := range r.Keys {
		if k.Count > 0 {
			objects++
			words = append(words, "--object", foreign.ShellWord(k.Object+"="+strconv.FormatInt(k.Count, 10)))
		}
	}
	if objects == 0 {
		return ""
	}
	for _, name := range []string{"identifier", "key-template", "key-range", "token-env", "tls-roots", "development"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			words = append(words, "--"+name, foreign.ShellWord(f.Value.String()))
		}
	}
	for _, header := range l.Headers {
		name, _, _ := strings.Cut(header, ":")
		words = append(words, "--header", foreign.ShellWord(name+": …"))
	}
	return strings.Join(words, " ")
}

// plainURL reports whether a URL can be shown whole: nothing in it can be a secret.
func plainURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	const secret = 8 // letters from which a part of a path may be one
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		if len(part) >= secret && !foreign.PlainWord(part) {
			return false
		}
	}
	return true
}

// runKeys are the keys that --run and --object name.
func runKeys(run string, objects []string, identifier string, o loadgen.Options) ([]loadgen.WrittenKeys, error) {
	if len(objects) == 0 {
		return nil, exit.Usagef("name the objects of the run with the number of their keys: --object contact=1000")
	}
	var all []loadgen.WrittenKeys
	for _, text := range objects {
		name, number, _ := strings.Cut(text, "=")
		count, err := strconv.ParseInt(number, 10, 64)
		if err != nil || count < 1 || name == "" {
			return nil, exit.Usagef("--object %q is not NAME=COUNT, such as contact=1000; the summary of the load has the whole command", text)
		}
		keys, err := loadgen.RunKeys(run, o.KeyTemplate, o.KeyFrom, o.KeyTo)
		if err != nil {
			return nil, command.Failure(err)
		}
		all = append(all, loadgen.WrittenKeys{Object: name, Field: identifier, Count: count, Keys: keys})
	}
	return all, nil
}
