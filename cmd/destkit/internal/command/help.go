package command

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// HelpColumns is the longest line of a help text, and HelpLines two screens of lines.
const (
	HelpColumns = 80
	HelpLines   = 96
)

// ManyFlags is the least number of flags that a help text shows under headings.
const ManyFlags = 11

// roomyFlags is the greatest number of flags with empty lines between their groups.
const roomyFlags = 50

// flagGroup is a heading of a help text with the flags below it, in the order of their
// registration. The same flag is in the same group of every command; "COMMAND FLAG"
// is the flag of one command, where that means something else there.
type flagGroup struct {
	Title string
	Flags []string
}

// FlagGroups are all groups, in the order of help texts.
var FlagGroups = []flagGroup{
	{"Address", []string{"addr", "tls", "ca-out", "tls-cert", "tls-key"}},
	{"Target", []string{
		"to", "from", "url", "existing", "workspace", "token-env", "header", "url-secret", "tls-roots", "development", "replica",
		"control-url", "control-token-env", "simulator-url", "simulator-listen", "conform service dialect", "plan service dialect", "source", "probe-plain-http",
	}},
	{"Data and processes", []string{"serve data", "store", "exit-with-stdin", "serve seed", "restore", "key-file", "destsim config", "preset"}},
	{"Write", []string{
		"write", "object", "operation", "batch-size", "allow-leftovers", "max-records", "run", "key-template", "key-range", "skip-convention", "journal", "cleanup",
		"data", "data-keys", "template", "field", "identifier", "repeat-keys", "prime", "load seed", "rows",
	}},
	{"Endpoint to write", []string{"lang", "init store", "ci", "port", "force"}},
	{"Behaviour", []string{"serve dialect", "explain-dialect", "violate", "list-violations", "enforce-limits", "keep-bodies", "serve development"}},
	{"Access", []string{"destsim token-env", "destsim control-token-env", "serve control-token-env", "destination-ca", "allow-plain-http", "allow-files", "allow-hosts", "deny-loopback"}},
	{"Mail", []string{"smtp", "smtp-from", "smtp-tls", "smtp-timeout", "smtp-user", "smtp-password-env", "smtp-password-file"}},
	{"Hooks", []string{"readback-url", "readback-command", "readback-window", "hooks", "hooks-out", "verify"}},
	{"Selection", []string{"profile", "select", "skip", "waivers", "features", "load", "patient", "suite", "full", "limit", "sync-run", "sync", "scenario", "list", "per-page"}},
	{"Rate", []string{"as-declared", "ask-speed", "rate", "records-rate", "stages", "steps", "burst", "closed", "search", "slo", "confirm", "connections", "catch-up", "poll-interval"}},
	{"Time and limits", []string{
		"duration", "count", "warm-up", "start-at", "fail-if", "abort-errors", "max-failed", "timeout", "serial", "seed",
		"planning-timeout", "batch-timeout", "request-timeout", "run-timeout", "connect-timeout", "webhook-timeout", "query-timeout", "max-row",
		"interval", "patience", "cancel-on-interrupt", "detach", "once",
	}},
	{"Control", []string{"control-addr", "proxy control-token-env", "control-keep"}},
	{"Recording", []string{"proxy journal", "har", "max-body", "for"}},
	{"Connections", []string{"http-client", "http2", "proxy", "new-connections", "compress"}},
	{"Watch", []string{"watch", "watch-path", "exec"}},
	{"Output", []string{
		"config", "report", "caller-report", "judge", "require-complete", "require-clean", "json", "markdown", "html", "csv", "hdr", "junit", "prometheus",
		"dashboard", "dashboard-addr", "dashboard-keep", "load control-token-env", "load service control-token-env",
		"dir", "demo data", "log-level", "log-format", "verbose", "quiet", "no-color", "help",
	}},
}

// ProfilingPrefix begins the flags that one line of a help text covers.
const ProfilingPrefix = "profile-"

// GroupOf is the heading of a flag, "" when it has none.
func GroupOf(cmd *cobra.Command, name string) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	general := ""
	for _, group := range FlagGroups {
		if slices.Contains(group.Flags, path+" "+name) {
			return group.Title
		}
		if slices.Contains(group.Flags, name) {
			general = group.Title
		}
	}
	return general
}

// addFlagsInGroups makes flagsInGroups known to the templates of the library, which all
// commands share.
var addFlagsInGroups = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagsInGroups", flagsInGroups) })

// UseHelp makes help texts of at most HelpLines lines of HelpColumns columns, with flags
// in groups and a table of exit statuses.
func UseHelp(root *cobra.Command) {
	addFlagsInGroups()
	EndHelp(root, exitTable)
}

// helpTemplate is what follows the words of a command, as far as its exit statuses.
const helpTemplate = `Usage:{{if gt (len .UseLine) 70}}
 {{end}} {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

{{flagsInGroups .}}{{end}}

`

// EndHelp puts a table of exit statuses below the help text of cmd and its
// subcommands.
func EndHelp(cmd *cobra.Command, table string) {
	cmd.SetUsageTemplate(helpTemplate + table + "\n")
}

// flagsInGroups lists the flags of a command.
func flagsInGroups(cmd *cobra.Command) string {
	var all []*pflag.Flag
	var profiles []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		mode, profile := strings.CutPrefix(f.Name, ProfilingPrefix)
		switch {
		case profile:
			profiles = append(profiles, mode)
		case !f.Hidden:
			all = append(all, f)
		}
	})
	var lines []string
	if len(all) < ManyFlags {
		lines = flagBlock("Flags:", all)
	} else {
		var blocks [][]string
		for _, group := range append(FlagGroups, flagGroup{}) {
			flags := lists.Where(all, func(f *pflag.Flag) bool { return GroupOf(cmd, f.Name) == group.Title && f.Name != "help" })
			if len(flags) > 0 {
				blocks = append(blocks, flagBlock(strings.TrimSpace(group.Title+" flags:"), flags))
			}
		}
		if len(all) <= roomyFlags {
			for i := range blocks[1:] {
				blocks[i] = append(blocks[i], "")
			}
		}
		lines = slices.Concat(blocks...)
	}
	if len(profiles) > 0 {
		lines = append(lines, flagLines("      --"+ProfilingPrefix+"MODE DIR", "profile destkit: "+strings.Join(profiles, ", "))...)
	}
	return strings.Join(lines, "\n")
}

// flagBlock is a heading with its flags. Neighbours with the same words share a line.
func flagBlock(title string, flags []*pflag.Flag) []string {
	lines := []string{title}
	names := ""
	for i, f := range flags {
		kind, words := pflag.UnquoteUsage(f)
		names += "--" + f.Name
		if i+1 < len(flags) && flags[i+1].Usage == f.Usage {
			names += ", "
			continue
		}
		left := "      " + names
		if f.Shorthand != "" {
			left = "  -" + f.Shorthand + ", " + names
		}
		if kind != "" {
			left += " " + kind
		}
		lines = append(lines, flagLines(left, strings.TrimPrefix(words, kind+": ")+defaultWords(f))...)
		names = ""
	}
	return lines
}

// wordsColumn is where the words of a flag begin.
const wordsColumn = 26

// flagLines are the lines of one flag: a single one where that fits. The words of a
// longer one begin at wordsColumn, in a line below where the flag does not leave room.
func flagLines(left, words string) []string {
	width := max(wordsColumn, utf8.RuneCountInString(left)+2)
	if width+utf8.RuneCountInString(words) <= HelpColumns {
		return []string{foreign.Pad(left, width) + words}
	}
	var lines []string
	if width > wordsColumn {
		lines, left = append(lines, left), ""
	}
	for _, line := range FoldLines(words, HelpColumns-wordsColumn) {
		lines = append(lines, foreign.Pad(left, wordsColumn)+line)
		left = ""
	}
	return lines
}

// defaultWords is the default of a flag, "" for nothing and where its words name it.
func defaultWords(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]", "<nil>":
		return ""
	}
	if strings.Contains(f.Usage, "(default") {
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// FoldLines breaks text at spaces into lines of at most n columns. A longer word has a
// line for itself.
func FoldLines(text string, n int) []string {
	return foreign.Wrap(strings.Join(strings.Fields(text), " "), n)
}
