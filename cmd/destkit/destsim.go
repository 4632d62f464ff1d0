package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// simulator holds the flags of `destkit destsim`.
type simulator struct {
	config  destsim.Config
	token   command.TokenFlag
	control string

	addr, file      string
	secure          bool
	caOut, hooksOut string
	list            bool
	parent          command.Parent
	profiling       command.Profiling
}

// newDestsim opens the one port of the simulator: endpoint, control and health
// share it, so that a test needs to know one address only.
func newDestsim() *cobra.Command {
	var s simulator
	cmd := &cobra.Command{
		Use:   "destsim",
		Short: "Run the simulated destination",
		Long: `Run a destination that obeys every rule of the protocol, or breaks exactly the
ones that you name. POST on any path is the endpoint. /_control (records read
back, reset, counts, journal of calls, faults, schema changes, metrics,
profiles) and /healthz stand beside it; /_control answers on loopback only,
unless a control token is set.

The first line says where it listens (--json: as JSON). It stops on SIGINT and
SIGTERM.

` + strings.Join(command.FoldLines("Presets: "+strings.Join(destsim.Presets(), ", ")+".", command.HelpColumns), "\n"),
		Example: `  destkit destsim
  destkit destsim --addr 127.0.0.1:0 --preset crm --store sqlite:crm.db
  destkit destsim --violate RES-002 --violate TIM-001
  destkit destsim --tls --ca-out ca.pem --hooks-out hooks.yaml
  destkit destsim --list-violations`,
		Args: command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.list {
				return s.listViolations(cmd.OutOrStdout())
			}
			s.parent.Watch(cmd)
			return s.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&s.addr, "addr", "a", "127.0.0.1:8090", "`HOST:PORT`: where to listen; port 0: any")
	f.StringVar(&s.file, "config", "", "YAML `FILE` that describes the destination")
	f.StringVar(&s.config.Preset, "preset", "", "start from the preset `NAME` (default default)")
	f.StringVar(&s.config.Store, "store", "", "`memory|sqlite:FILE`: where records are (default memory)")
	f.BoolVar(&s.secure, "tls", false, "serve https, with an authority made for it")
	f.StringVar(&s.caOut, "ca-out", "", "write that authority's certificate into `FILE` (PEM)")
	f.StringSliceVar(&s.config.Violate, "violate", nil, "break the rule `ID`, as RES-002 or RES-002.2 (repeatable)")
	s.token.Register(f)
	f.StringVar(&s.control, "control-token-env", "", "variable `NAME` with the token of /_control")
	f.StringVar(&s.hooksOut, "hooks-out", "", "write a hooks `FILE` for 'destkit conform --hooks'")
	f.BoolVar(&s.config.EnforceLimits, "enforce-limits", false, "refuse what exceeds the declared speed and rate limit")
	f.BoolVar(&s.config.KeepBodies, "keep-bodies", false, "keep bodies of calls, without secrets, in the journal")
	f.BoolVar(&s.list, "list-violations", false, "list the rules that can be broken, and how")
	s.parent.Register(f, "--list-violations")
	s.profiling.Register(cmd)
	command.EndHelp(cmd, command.ServeExitTable)
	return cmd
}

// listViolations prints what can be broken on purpose.
func (s *simulator) listViolations(w io.Writer) error {
	all := destsim.Violations()
	if s.parent.AsJSON {
		return command.PrintJSON(w, all)
	}
	for _, v := range all {
		foreign.Printf(w, "%-11s %s\n", v.ID, v.Changes)
		for _, also := range v.Also {
			foreign.Printf(w, "%-11s   also %s: %s\n", "", also.ID, also.Why)
		}
	}
	foreign.Printf(w, "%s\n", quantity.Count(len(all), "violation"))
	return nil
}

// run serves until a signal comes.
func (s *simulator) run(cmd *cobra.Command) error {
	if err := s.resolve(cmd); err != nil {
		return err
	}
	s.config.Profile = http.HandlerFunc(command.ServeProfiles)
	sim, err := destsim.New(s.config)
	if err != nil {
		return exit.Usage(s.placed(cmd, err))
	}
	defer sim.Close() // late writes of a violation land before the process ends
	stopProfile, err := s.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	port := &command.Port{Addr: s.addr, Handler: sim}
	if err := s.secureWith(port, sim.TLSViolation()); err != nil {
		return err
	}
	// The port comes first and the line about it last: who reads the line finds
	// the certificate and the hooks file there.
	ln, url, err := port.Open()
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := s.writeHooks(url); err != nil {
		return err
	}
	if err := s.parent.Listening(cmd.OutOrStdout(), url, command.FirstLine{}); err != nil {
		return err
	}
	out := s.parent.Notices(cmd)
	for _, id := range s.config.Violate {
		for _, v := range destsim.Violations() {
			if v.ID == id {
				foreign.Printf(out, "breaking %s: %s\n", v.ID, v.Changes)
			}
		}
	}
	err = port.Serve(cmd.Context(), ln)
	// A fault that no call met means that a test did not test what it meant to.
	for _, f := range sim.UnfiredFaults() {
		foreign.Printf(out, "fault %s (%s) never fired; its filters let %d through\n", f.ID, f.Fault.Kind, f.Matched)
	}
	return err
}

// resolve merges the configuration file, which the command line wins over, and
// reads the tokens.
func (s *simulator) resolve(cmd *cobra.Command) error {
	given := s.config // what the flags have bound, and their defaults
	if s.file != "" {
		s.config = destsim.Config{}
		if err := configfile.Read(s.file, &s.config); err != nil {
			return err
		}
	}
	for flag, take := range map[string]func(){
		"preset":         func() { s.config.Preset = given.Preset },
		"store":          func() { s.config.Store = given.Store },
		"violate":        func() { s.config.Violate = given.Violate },
		"enforce-limits": func() { s.config.EnforceLimits = given.EnforceLimits },
		"keep-bodies":    func() { s.config.KeepBodies = given.KeepBodies },
	} {
		if cmd.Flags().Changed(flag) {
			take()
		}
	}
	if s.token.Variable == "" && s.config.TokenEnv != "" {
		s.token.Variable, s.token.Key = s.config.TokenEnv, s.file+": token_env"
	}
	if s.token.Variable != "" {
		token, err := s.token.Read()
		if err != nil {
			return err
		}
		s.config.Token = token
	}
	if s.control != "" {
		token, err := (&command.TokenFlag{Name: "control-token-env", Variable: s.control}).Read()
		if err != nil {
			return err
		}
		s.config.ControlToken = token
	}
	return nil
}

// placed reports where a setting that is refused was given: by a flag, or in the file.
func (s *simulator) placed(cmd *cobra.Command, err error) error {
	name, rest, _ := strings.Cut(err.Error(), ": ")
	if strings.HasPrefix(name, "violate[") && cmd.Flags().Changed("violate") {
		return fmt.Errorf("--violate: %s ('destkit destsim --list-violations' lists them)", rest)
	}
	if s.file == "" || strings.HasPrefix(rest, "store: ") && cmd.Flags().Changed("store") {
		return err
	}
	return configfile.Located(s.file, err)
}

// secureWith chooses the certificate: a good one, or the bad one that a broken
// TLS rule requires.
func (s *simulator) secureWith(port *command.Port, violation string) error {
	switch {
	case violation == "TLS-001":
		// Its whole breach is that the endpoint is not https, regardless of --tls.
	case violation != "" && !s.secure:
		return exit.Usagef("--violate %s breaks a rule of TLS: add --tls", violation)
	}
	if !s.secure {
		if s.caOut != "" {
			return exit.Usagef("--ca-out needs --tls: without it there is no certificate")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return exit.Usagef("--addr %q is not HOST:PORT", s.addr)
	}
	certificates, err := destsim.NewCertificates(nil, host)
	if err != nil {
		return exit.Untested(err)
	}
	port.AlsoPlain = violation == "TLS-007"
	if port.TLS, err = certificates.TLSConfig(violation); err != nil {
		return exit.Untested(err)
	}
	if violation == "TLS-001" {
		port.TLS = nil
	}
	if s.caOut == "" {
		return nil
	}
	if err := os.WriteFile(s.caOut, certificates.CAPEM(), 0o644); err != nil {
		return exit.Usagef("write --ca-out: %w", err)
	}
	return nil
}

// writeHooks writes the file for --hooks. It may hold the control token.
func (s *simulator) writeHooks(url string) error {
	if s.hooksOut == "" {
		return nil
	}
	if err := os.WriteFile(s.hooksOut, s.config.HooksFile(url), 0o600); err != nil {
		return exit.Usagef("write --hooks-out: %w", err)
	}
	return nil
}
