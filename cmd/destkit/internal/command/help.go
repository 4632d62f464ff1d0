package command

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/internal/lists"
)

// HelpColumns is the longest line of a help text.
const HelpColumns = 80

// ManyFlags is the least number of flags that a help text shows under headings.
const ManyFlags = 11

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
	{"Write", []string{"write", "object", "operation", "batch-size", "allow-leftovers", "max-records", "run", "key-template", "key-range", "skip-convention", "journal", "cleanup"}},
	{"Records", []string{"data", "data-keys", "template", "field", "identifier", "repeat-keys", "prime", "load seed", "rows"}},
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
	{"Control", []string{"control-addr", "proxy control-token-env", "control-keep", "dashboard", "dashboard-addr", "dashboard-keep", "load control-token-env", "load service control-token-env"}},
	{"Recording", []string{"proxy journal", "har", "max-body", "for"}},
	{"Connections", []string{"http-client", "http2", "proxy", "new-connections", "compress"}},
	{"Watch", []string{"watch", "watch-path", "exec"}},
	{"Output", []string{
		"config", "report", "caller-report", "judge", "require-complete", "require-clean", "json", "markdown", "html", "csv", "hdr", "prometheus",
		"dir", "demo data", "log-level", "log-format", "verbose", "quiet", "no-color", "help",
	}},
}

// ProfilingPrefix begins the flags that one line of a help text stands for.
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

// UseHelp makes help texts of at most 80 columns, with flags in groups. The template
// of cobra stays as it is but for the flags, and for a table of exit statuses below.
func UseHelp(root *cobra.Command) {
	addFlagsInGroups()
	EndHelp(root, exitTable)
}

// EndHelp puts a table of exit statuses below the help text of cmd and of what is
// below it.
func EndHelp(cmd *cobra.Command, table string) {
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	plain := (&cobra.Command{}).UsageTemplate()
	if !strings.Contains(plain, flags) {
		panic("the library has another template of help texts")
	}
	cmd.SetUsageTemplate(strings.Replace(plain, flags, "{{flagsInGroups .}}", 1) + "\n" + table + "\n")
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
	var blocks []string
	if len(all) < ManyFlags {
		blocks = []string{flagBlock("Flags:", all)}
	} else {
		for _, group := range append(FlagGroups, flagGroup{}) {
			flags := lists.Where(all, func(f *pflag.Flag) bool { return GroupOf(cmd, f.Name) == group.Title })
			if len(flags) > 0 {
				blocks = append(blocks, flagBlock(strings.TrimSpace(group.Title+" flags:"), flags))
			}
		}
	}
	if len(profiles) > 0 {
		blocks = append(blocks, strings.Join(FoldLines("Profiles of destkit itself: --profile-MODE DIR, where MODE is "+
			strings.Join(profiles, ", ")+"; see docs/evidence/performance.md.", HelpColumns), "\n"))
	}
	return strings.Join(blocks, "\n\n")
}

// wordsColumn is where the words of a flag begin. A flag that is too long for the
// columns before it has its words in the next line.
const wordsColumn = 26

// flagBlock is a heading with its flags.
func flagBlock(title string, flags []*pflag.Flag) string {
	lines := []string{title}
	for _, f := range flags {
		kind, words := pflag.UnquoteUsage(f)
		left := "      --" + f.Name
		if f.Shorthand != "" {
			left = "  -" + f.Shorthand + ", --" + f.Name
		}
		if kind != "" {
			left += " " + kind
		}
		words += defaultWords(f)
		if utf8.RuneCountInString(left) > wordsColumn-2 {
			lines = append(lines, left)
			left = ""
		}
		for _, line := range FoldLines(words, HelpColumns-wordsColumn) {
			lines = append(lines, left+strings.Repeat(" ", wordsColumn-utf8.RuneCountInString(left))+line)
			left = ""
		}
	}
	return strings.Join(lines, "\n")
}

// defaultWords is the default of a flag in the manner of pflag, "" for nothing.
func defaultWords(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]", "<nil>":
		return ""
	}
	if f.Value.Type() == "string" {
		return ` (default "` + f.DefValue + `")`
	}
	return " (default " + f.DefValue + ")"
}

// FoldLines breaks text at spaces into lines of at most n columns. A longer word has a
// line for itself.
func FoldLines(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
