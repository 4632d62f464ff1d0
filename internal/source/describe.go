package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
)

// describer is a source whose columns cost one look into its catalogue, over the
// connection that has to be tried anyway. opened: the source itself is well, and
// the error is about the object.
type describer interface {
	Source
	describe(ctx context.Context, object Object) (columns []api.Column, opened bool, err error)
}

// OpenAt opens a source and reads the columns of an object, as every run does: it
// costs what Open costs and one query of the catalogue. err is why the source cannot
// be opened; missing is why the columns cannot be read, and the source is open then.
func (c *Catalogue) OpenAt(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options, object Object) (src Source, columns []api.Column, missing, err error) {
	t, ok := c.types[typ]
	if !ok || t.unopened == nil || len(c.CheckCredentials(typ, credentials)) > 0 {
		if src, err = c.Open(ctx, typ, credentials, o); err != nil {
			return nil, nil, nil, err
		}
		columns, missing = src.Columns(ctx, object)
		return src, columns, missing, nil
	}
	from := t.unopened(settings(credentials), o)
	columns, opened, err := from.describe(ctx, object)
	switch {
	case err == nil:
		return from, columns, nil, nil
	case opened:
		return from, nil, err, nil
	}
	return nil, nil, nil, clean(fmt.Errorf("open %s source: %w", typ, err), c.Secrets(typ, credentials))
}

// describe implements describer.
func (p *postgres) describe(ctx context.Context, object Object) (columns []api.Column, opened bool, err error) {
	err = p.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		opened = true
		if object.Query == "" {
			columns, _, err = p.columns(ctx, conn, object)
			return err
		}
		// Whether it is one SELECT was looked at as it was saved, and is when it is read.
		described, err := conn.Prepare(ctx, "", object.Query)
		if err != nil {
			return postgresQueryError(err)
		}
		columns, err = p.fieldColumns(ctx, conn, described.Fields)
		return err
	})
	return columns, opened, err
}

// describe implements describer.
func (s *sqliteSource) describe(ctx context.Context, object Object) (columns []api.Column, opened bool, err error) {
	err = s.with(ctx, func(conn *sqlite.Conn) error {
		if err := firstPage(conn); err != nil {
			return err
		}
		opened = true
		columns, err = s.columnsIn(conn, object)
		return err
	})
	return columns, opened, err
}

// Steps of a connection test, in their order (spec 2.2; the names are ours).
// A type has those that mean something for it.
const (
	stepCredentials  = "credentials"  // all fields there and well formed
	stepAddress      = "address"      // the host name resolves
	stepConnect      = "connect"      // the port answers, the file opens
	stepAuthenticate = "authenticate" // user and password are taken
	stepRead         = "read"         // the tables can be listed
)

// probe is a connection test in the making: steps that pass on their connections.
type probe struct {
	steps []step
	src   Source
}

// step is one step of a connection test.
type step struct {
	name string
	run  func(context.Context) error
}

// Test tries a connection step by step for real; steps after a failed one are
// skipped. It never fails itself: the result holds the reason.
func (c *Catalogue) Test(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options) api.TestResults {
	t, ok := c.types[typ]
	problems := c.CheckCredentials(typ, credentials)
	if !ok {
		return api.TestResults{Steps: []api.TestStep{failed(stepCredentials, "source "+problems[0].String())}}
	}
	p := t.steps(t, settings(credentials), o)
	defer func() {
		if p.src != nil {
			_ = p.src.Close()
		}
	}()
	results := api.TestResults{Steps: []api.TestStep{{Step: stepCredentials, Status: api.StepPassed}}}
	broken := false
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, problem := range problems {
			lines[i] = problem.String()
		}
		results.Steps[0], broken = failed(stepCredentials, strings.Join(lines, "; ")), true
	}
	for _, step := range p.steps {
		if broken {
			results.Steps = append(results.Steps, api.TestStep{Step: step.name, Status: api.StepSkipped})
			continue
		}
		done := api.TestStep{Step: step.name, Status: api.StepPassed}
		if err := step.run(ctx); err != nil {
			done = failed(step.name, cleanText(err.Error(), c.Secrets(typ, credentials)))
			broken = true
		}
		results.Steps = append(results.Steps, done)
	}
	return results
}

// failed is a step that did not pass; the message holds no secret.
func failed(name, message string) api.TestStep {
	return api.TestStep{Step: name, Status: api.StepFailed, Error: &api.StepError{Message: message}}
}

// opening makes the probe of a type for which opening is one step, followed by
// reading.
func opening(t *sourceType, s settings, o Options) *probe {
	p := &probe{}
	p.add(stepConnect, func(ctx context.Context) (err error) {
		p.src, err = t.open(ctx, t, s, o)
		return err
	})
	p.addRead()
	return p
}

// add appends a step; those behind a failed one are skipped.
func (p *probe) add(name string, run func(context.Context) error) {
	p.steps = append(p.steps, step{name, run})
}

// addRead appends the last step: that tables can be listed is what a source is
// for.
func (p *probe) addRead() {
	p.add(stepRead, func(ctx context.Context) error {
		_, err := p.src.Tables(ctx)
		return err
	})
}

// find resolves a path that a source may read.
func (o Options) find(path string) (*reach.Place, error) {
	place, err := o.Files.Find(path)
	return place, openError(path, err)
}

// openFile opens a file that is one; a named pipe would wait for ever.
func (o Options) openFile(path string) (*os.File, error) {
	place, err := o.find(path)
	if err != nil {
		return nil, err
	}
	if _, err := plain(place, path, false); err != nil {
		return nil, err
	}
	f, err := place.Open()
	return f, openError(path, err)
}

// plain looks at a place without opening it, and returns a clear reason why it
// cannot be read as a file, or as a folder where that is allowed.
func plain(place *reach.Place, path string, folder bool) (os.FileInfo, error) {
	info, err := place.Stat()
	switch {
	case err != nil:
		return nil, openError(path, err)
	case info.IsDir() && folder:
	case info.IsDir():
		return nil, fmt.Errorf("open %s: it is a folder, and must be a file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: it is not a regular file", path)
	}
	return info, nil
}

// openError reports why a path could not be opened, with the path as it was given.
func openError(path string, err error) error {
	switch {
	case err == nil || reach.Refused(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open %s: there is no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open %s: the service may not read it", path)
	}
	return fmt.Errorf("open %s: %w", path, pathless(err))
}
