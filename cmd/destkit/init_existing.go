package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/skeletons"
	"github.com/destkit/destkit/internal/unreached"
)

// existing is an endpoint that is there already, and how to get in.
type existing struct {
	url     string
	token   command.TokenFlag
	headers []string
	roots   string
	timeout time.Duration
}

func (e *existing) register(f *pflag.FlagSet) {
	f.StringVar(&e.url, "existing", "", "`URL` of an endpoint that exists: ask it for what to write")
	e.token.Register(f)
	f.StringArrayVar(&e.headers, "header", nil, "`'Name: value'`: a further header of every call (repeatable)")
	f.StringVar(&e.roots, "tls-roots", "", "PEM `FILE` of roots that replace the public ones")
	f.DurationVar(&e.timeout, "planning-timeout", 10*time.Second, "deadline of a planning call")
}

// fromExisting queries the endpoint and writes what judging it needs.
func (i *initialising) fromExisting(cmd *cobra.Command, folder string) error {
	if err := checkChoice("ci", i.choice.Pipeline, skeletons.Pipelines); err != nil {
		return err
	}
	client, err := i.existing.client()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	foreign.Printf(w, "%s\n", withoutSecrets(i.existing.url))
	secrets, err := i.existing.secrets(client)
	if err != nil {
		return err
	}
	endpoint, err := askEndpoint(cmd.Context(), w, client, i.existing.timeout, secrets)
	if err != nil {
		return exit.Untested(errors.New("ask the endpoint: " + secrets.String(err.Error())))
	}
	endpoint.TokenEnv = i.existing.token.Variable
	files, err := existingFiles(endpoint, i.choice.Pipeline)
	if err != nil {
		return exit.Untested(err)
	}
	foreign.Println(w)
	if err := writeFiles(w, folder, files, i.force); err != nil {
		return err
	}
	printCommands(w, "Judge it; nothing is written into it until destkit.yaml permits that:", folder, i.existing.judgeCommands())
	return nil
}

// client calls the endpoint, following no redirects.
func (e *existing) client() (*rpc.Client, error) {
	if err := command.CheckURL("--existing", e.url); err != nil {
		return nil, exit.Usage(err)
	}
	if e.timeout <= 0 {
		return nil, exit.Usagef("--planning-timeout must be longer than nothing, not %s", e.timeout)
	}
	token, err := e.token.Read()
	if err != nil {
		return nil, err
	}
	named, err := command.Headers(e.headers)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, value := range named {
		header.Set(name, value)
	}
	roots, err := command.Roots(e.roots)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &rpc.Client{URL: e.url, Token: token, Header: header, HTTP: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// secrets are those of the calls, which an endpoint may repeat in any answer.
func (e *existing) secrets(client *rpc.Client) (*foreign.Redactor, error) {
	u, err := url.Parse(e.url)
	if err != nil {
		return nil, exit.Usagef("--existing: the URL does not parse")
	}
	r := foreign.New()
	r.Add(client.Token, "$"+e.token.Variable)
	for name := range client.Header {
		r.Add(client.Header.Get(name), "$DESTKIT_HEADER")
	}
	r.AddURL(u, "$DESTKIT_")
	return r, nil
}

// judgeCommands judge the endpoint with the written files. A URL that may carry
// a secret goes into the environment.
func (e *existing) judgeCommands() []string {
	var all []string
	if e.token.Variable != "" {
		all = append(all, "export "+e.token.Variable+"=…")
	}
	target := foreign.ShellWord(e.url)
	if withoutSecrets(e.url) != e.url {
		all, target = append(all, "export "+command.URLVariable+"=… # the URL, with its secrets"), ""
	}
	return append(all, strings.Join(strings.Fields("destkit conform "+target+" --config destkit.yaml"), " "))
}

// withoutSecrets is a URL without the parts that may be secret.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(a URL that cannot be read)"
	}
	if u.User == nil && u.RawQuery == "" {
		return text
	}
	shown := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		shown += "?…"
	}
	return shown
}

// askEndpoint makes the planning calls and shows each answer as it comes, without the secrets.
func askEndpoint(ctx context.Context, w io.Writer, client *rpc.Client, timeout time.Duration, secrets *foreign.Redactor) (skeletons.Endpoint, error) {
	var endpoint skeletons.Endpoint
	health, err := ask(ctx, timeout, rpc.MethodTestConnection, client.TestConnection)
	if err != nil {
		return endpoint, err
	}
	foreign.Printf(w, "test_connection: %s\n", secrets.String(healthWords(health)))
	speed, err := ask(ctx, timeout, rpc.MethodGetSyncSpeed, client.GetSyncSpeed)
	if err != nil {
		return endpoint, err
	}
	foreign.Printf(w, "get_sync_speed: %s in a batch, %s at once, %d records/s\n",
		quantity.Count(speed.MaximumBatchSize, "record"), quantity.Count(speed.MaximumParallelBatches, "batch"), speed.MaximumRecordsPerSecond)
	objects, err := ask(ctx, timeout, rpc.MethodListObjects, client.ListObjects)
	if err != nil {
		return endpoint, err
	}
	for _, object := range objects {
		o := skeletons.Object{Object: object}
		o.Operations, err = ask(ctx, timeout, rpc.MethodSupportedOperations+" of "+object.APIName,
			func(ctx context.Context) ([]string, error) { return client.SupportedOperations(ctx, object.Ref()) })
		if err != nil {
			return endpoint, err
		}
		o.Fields, err = ask(ctx, timeout, rpc.MethodListFields+" of "+object.APIName,
			func(ctx context.Context) ([]rpc.Field, error) { return client.ListFields(ctx, object.Ref()) })
		if err != nil {
			return endpoint, err
		}
		secrets.Value(&o)
		printObject(w, o)
		endpoint.Objects = append(endpoint.Objects, o)
	}
	return endpoint, nil
}

// ask makes one call, and adds the call and advice to an error.
func ask[T any](ctx context.Context, timeout time.Duration, method string, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := call(ctx)
	if cause := unreached.Of(err, "endpoint", "the host of the URL"); cause.What != "" {
		return answer, fmt.Errorf("%s: %s: %s", method, cause.What, cause.Fix)
	}
	if err != nil {
		return answer, fmt.Errorf("%s: %w", method, err)
	}
	return answer, nil
}

func healthWords(health rpc.TestResult) string {
	if health.Success {
		return "healthy"
	}
	return "unhealthy: " + health.ErrorMessage
}

// printObject shows an object with its fields.
func printObject(w io.Writer, o skeletons.Object) {
	foreign.Printf(w, "\n%s (%s): %s\n", o.APIName, o.Label, strings.Join(o.Operations, ", "))
	for _, f := range o.Fields {
		kind := f.Type
		if f.Array {
			kind += ", a list"
		}
		for _, property := range []struct {
			holds bool
			word  string
		}{
			{f.Identifier, "identifier"},
			{f.Required, "required"},
			{!f.Createable, "not written on create"},
			{!f.Updateable, "not written on update"},
		} {
			if property.holds {
				kind += ", " + property.word
			}
		}
		foreign.Printf(w, "  %-24s %s\n", f.APIName, kind)
	}
}

// existingFiles are those to write.
func existingFiles(endpoint skeletons.Endpoint, pipeline string) ([]skeletons.File, error) {
	configuration, err := endpoint.Configuration()
	if err != nil {
		return nil, err
	}
	hooks, err := skeletons.Hooks()
	if err != nil {
		return nil, err
	}
	files := []skeletons.File{configuration, hooks}
	file, ok, err := skeletons.Pipeline(pipeline)
	if ok {
		files = append(files, file)
	}
	return files, err
}
