package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/unreached"
)

// readiness holds the flags of `destkit serve ready`.
type readiness struct {
	url               string
	patience, timeout time.Duration
}

// askAgain is the pause between two questions with --patience.
const askAgain = 200 * time.Millisecond

// newReady is the health check of a container that holds nothing but the
// program.
func newReady() *cobra.Command {
	var r readiness
	cmd := &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask whether a service is ready, for health checks and scripts",
		Long: `Ask the service at URL (http://127.0.0.1:8080 when left out) whether it is
ready: its /readyz, or the path of the URL where it has one, such as /healthz
of a simulator. Ready is exit 0; not ready, or no answer, is exit 3 with the
reason.`,
		Example: "  destkit serve ready\n  destkit serve ready http://127.0.0.1:8081 --patience 30s\n  destkit serve ready http://127.0.0.1:8080/healthz",
		Args:    command.Arguments(0, 1, "the URL of the service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.url = "http://127.0.0.1:8080"
			if len(args) > 0 {
				r.url = args[0]
			}
			return r.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.DurationVar(&r.patience, "patience", 0, "ask again until it is ready, for so long")
	f.DurationVar(&r.timeout, "timeout", 5*time.Second, "deadline of one question")
	return cmd
}

func (r *readiness) run(ctx context.Context, out io.Writer) error {
	u, err := url.Parse(r.url)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return exit.Usagef("the URL must begin with http:// or https:// and have a host")
	case r.patience < 0:
		return exit.Usagef("--patience must not be negative")
	case r.timeout <= 0:
		return exit.Usagef("--timeout must be longer than nothing, not %s", r.timeout)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/readyz"
	}
	end := time.Now().Add(r.patience)
	for {
		err := r.ask(ctx, u.String())
		if err == nil {
			foreign.Println(out, "ready")
			return nil
		}
		if ctx.Err() != nil || !time.Now().Add(askAgain).Before(end) {
			return exit.Untested(err)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
}

// ask makes one call. The reason of a service that is not ready is its own.
func (r *readiness) ask(ctx context.Context, at string) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if cause := unreached.Of(err, "service", request.URL.Host); cause.What != "" {
			return fmt.Errorf("no answer: %s: %s", cause.What, cause.Fix)
		}
		return fmt.Errorf("no answer: %w", withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var body struct {
		Reason string `json:"reason"`
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil || json.Unmarshal(text, &body) != nil || body.Reason == "" {
		return fmt.Errorf("not ready: it answers with status %d", response.StatusCode)
	}
	return fmt.Errorf("not ready: %s", body.Reason)
}

// withoutURL is why a call failed; the caller adds its URL in front.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
