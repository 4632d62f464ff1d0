package serve

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

// mailFlags name the mail server that gets a copy of every e-mail. The password
// is never on a command line, where every process can read it.
type mailFlags struct {
	passwordVariable, passwordFile string
}

func (m *mailFlags) register(f *pflag.FlagSet, smtp *server.SMTP) {
	f.StringVar(&smtp.Addr, "smtp", "", "`HOST:PORT` of a mail server (default: the mailbox only)")
	f.StringVar(&smtp.From, "smtp-from", "", "`ADDRESS`: sender of every e-mail; needed with --smtp")
	f.StringVar(&smtp.TLS, "smtp-tls", server.SMTPStartTLS, "`starttls|tls|none`: encryption; none: for tests")
	f.DurationVar(&smtp.Timeout, "smtp-timeout", server.DefaultSMTPTimeout, "deadline of one e-mail")
	f.StringVar(&smtp.Username, "smtp-user", "", "`NAME` to log in with (default: no login)")
	f.StringVar(&m.passwordVariable, "smtp-password-env", "", "environment variable `NAME` with the password")
	f.StringVar(&m.passwordFile, "smtp-password-file", "", "`FILE`: the password, in a file")
}

// resolve reads the password and checks all of it, before anything is opened.
func (m *mailFlags) resolve(cmd *cobra.Command, smtp *server.SMTP) (err error) {
	// A flag without effect is a slip: who gives it believes that mail is sent.
	if smtp.Addr == "" {
		var alone string
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Name, "smtp-") && alone == "" {
				alone = f.Name
			}
		})
		if alone != "" {
			return exit.Usagef("--%s goes with --smtp HOST:PORT", alone)
		}
		*smtp = server.SMTP{}
		return nil
	}
	switch {
	case smtp.From == "":
		return exit.Usagef("--smtp needs --smtp-from, the address that the e-mails come from")
	case m.passwordVariable != "" && m.passwordFile != "":
		return exit.Usagef("--smtp-password-env and --smtp-password-file exclude each other")
	case m.passwordVariable != "":
		smtp.Password, err = (&command.TokenFlag{Name: "smtp-password-env", Variable: m.passwordVariable}).Read()
	case m.passwordFile != "":
		smtp.Password, err = readPassword(m.passwordFile)
	case smtp.Username != "":
		return exit.Usagef("--smtp-user needs a password: --smtp-password-env or --smtp-password-file")
	}
	if err != nil {
		return err
	}
	if smtp.Username == "" && smtp.Password != "" {
		return exit.Usagef("a password for --smtp needs --smtp-user")
	}
	if err := smtp.Check(); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// maxPassword bounds the file of a password in bytes: a wrong file is not read
// as a whole.
const maxPassword = 4096

// readPassword reads a password that a file holds; messages do not repeat it.
func readPassword(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", exit.Usagef("read --smtp-password-file: %w", err)
	}
	if info.Size() > maxPassword {
		return "", exit.Usagef("--smtp-password-file %s is larger than %d bytes; is it the right one?", file, maxPassword)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", exit.Usagef("read --smtp-password-file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	switch {
	case strings.TrimSpace(password) == "":
		return "", exit.Usagef("--smtp-password-file %s is empty", file)
	case strings.ContainsAny(password, "\r\n\x00"):
		return "", exit.Usagef("--smtp-password-file %s holds more than one line", file)
	}
	return password, nil
}
