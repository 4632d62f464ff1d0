package destination

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
)

// Formats of local_files.
const (
	FormatCSV   = "csv"
	FormatJSONL = "jsonl"
)

// filesKind writes files into one folder (spec 2.2, is_file_system_destination).
func filesKind(g *Gate) *kind {
	location := api.ConfigField{
		ID: "path", Label: "Folder", Type: "string", InputType: "text", Placeholder: "/srv/exports",
		Hint: "An absolute path; the folder is made when it is missing.", Rules: api.Rules{Words: []string{"required"}},
	}
	if g.options.FilesRoot != "" {
		location.Placeholder, location.Rules = "exports", api.Rules{}
		location.Hint = "Relative to the folder of the service for files; a folder of its own when left out."
	}
	format := api.ConfigField{
		ID: "format", Label: "Format", Type: "string", InputType: "dropdown", PossibleValues: []string{FormatCSV, FormatJSONL},
		Hint: "CSV with a header line, or JSON lines; csv when left out.",
	}
	return &kind{
		connector: api.Connector{
			DocumentationSlug: "local-files", Label: "Local files", ServiceName: api.TypeLocalFiles,
			AuthenticationKind: "none", CreatableViaAPI: true,
			ConfigurationFields: api.ConfigFields{Fields: []api.ConfigField{location, format}},
		},
		fileSystem: true,
		rules: func(c *check) {
			if _, has := c.merged["format"]; !has && !c.failed("format") {
				c.merged["format"] = api.Raw(FormatCSV)
			}
			if given, _ := text(c.merged["path"]); given != "" && !c.failed("path") {
				if _, problem := g.place(given); problem != "" {
					c.bad("path", "%s", problem)
				}
			}
		},
		details: filesDetails,
		secrets: func(Credentials) []string { return nil },
		open:    g.openFiles,
	}
}

// filesDetails show the folder, which is the account too (spec 2.2); "" is the folder
// that the service gives the destination.
func filesDetails(credentials Credentials) map[string]any {
	details := shown(credentials, "path", "format")
	path, _ := text(credentials["path"])
	inAccount(details, path, "Local files")
	return details
}

// place checks a path and gives it relative to FilesRoot, or cleaned where
// there is none.
func (g *Gate) place(path string) (clean, problem string) {
	root := g.options.FilesRoot
	if strings.ContainsRune(path, 0) {
		return "", "must not hold a NUL"
	}
	if root == "" {
		if !filepath.IsAbs(path) {
			return "", "must be an absolute path"
		}
		return filepath.Clean(path), ""
	}
	if filepath.IsAbs(path) {
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return "", "must be below the folder of the service for files"
		}
		path = relative
	}
	if path = filepath.Clean(path); !filepath.IsLocal(path) {
		return "", "must be below the folder of the service for files; give a relative path without .."
	}
	return path, ""
}

// openFiles does not touch the file system: a folder that is gone is found by
// the test and by planning, which can say so.
func (g *Gate) openFiles(id int64, credentials Credentials) (Connection, error) {
	path, _ := text(credentials["path"])
	format, _ := text(credentials["format"])
	if path == "" && g.options.FilesRoot != "" {
		path = "."
		if id != 0 {
			path = fmt.Sprintf("destination-%d", id)
		}
	}
	clean, problem := g.place(path)
	if problem == "" && format != FormatCSV && format != FormatJSONL {
		return nil, errors.New("format is neither csv nor jsonl")
	}
	return &filesConnection{root: g.options.FilesRoot, path: clean, open: g.options.Files, format: format, problem: problem}, nil
}

// filesConnection is a folder.
type filesConnection struct {
	root, path string // path is below root, or absolute where root is ""
	open       *reach.Files
	format     string
	problem    string
}

// Close does nothing: the folder is opened for each use.
func (c *filesConnection) Close() error { return nil }

// folder opens the folder, and makes it when it is missing. An os.Root keeps
// symbolic links from leading out of it.
func (c *filesConnection) folder() (*os.Root, error) {
	if c.problem != "" {
		return nil, errors.New("the path " + c.problem)
	}
	if c.root == "" {
		root, err := c.open.Folder(c.path)
		if err != nil && !reach.Refused(err) {
			err = fmt.Errorf("open folder: %w", err)
		}
		return root, err
	}
	if err := os.MkdirAll(c.root, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	root, err := os.OpenRoot(c.root)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	if c.path == "." {
		return root, nil
	}
	defer root.Close()
	if err := root.MkdirAll(c.path, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	below, err := root.OpenRoot(c.path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return below, nil
}

// Test opens the folder, then writes a file, reads it back and removes it.
func (c *filesConnection) Test(ctx context.Context) api.TestResults {
	p := &probe{}
	var root *os.Root
	p.step(StepPath, func() string {
		var err error
		if root, err = c.folder(); err != nil {
			return fileProblem(err)
		}
		return ""
	})
	p.step(StepWrite, func() string {
		defer root.Close()
		if err := ctx.Err(); err != nil {
			return "the test was cancelled"
		}
		if err := tryWrite(root); err != nil {
			return fileProblem(err)
		}
		return ""
	})
	return p.results
}

// tryWrite does what a sync will do later, under a name that no object has, and
// leaves nothing behind, also when a step in between fails.
func tryWrite(root *os.Root) (err error) {
	name := ".destkit-test-" + rand.Text()
	const content = "written by a connection test\n"
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	defer func() {
		if removeErr := root.Remove(name); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("remove file: %w", removeErr))
		}
	}()
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	got, err := root.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read file back: %w", err)
	}
	if string(got) != content {
		return errors.New("read file back: it holds something else")
	}
	return nil
}

// fileProblem puts the usual causes into plain words.
func fileProblem(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "the service may not write there: " + err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "the folder does not exist and cannot be made: " + err.Error()
	}
	return err.Error()
}
