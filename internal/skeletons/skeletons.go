// Package skeletons holds the custom destinations that `destkit init` writes: a
// small endpoint in each language, with its store, its test, its Dockerfile and
// the configuration of the judge. They are plain files in the folders here; the
// package only chooses among them. Asking an existing endpoint and writing files
// is left to the program.
package skeletons

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"
)

// A folder named base is a whole endpoint with its records in memory; those named
// after a store hold the files that differ. Go files carry .txt at the end of
// their names here, so that they are no part of this module.
//
//go:embed all:common all:go all:node all:python all:typescript
var tree embed.FS

// Languages, Stores and Pipelines are the choices, the default first.
var (
	Languages = []string{"node", "typescript", "python", "go"}
	Stores    = []string{"memory", "sqlite", "postgres"}
	Pipelines = []string{"github", "gitlab", "azure", "none"}
)

// Choice says which skeleton is meant.
type Choice struct {
	Language string // one of Languages
	Store    string // one of Stores
	Pipeline string // one of Pipelines
	Port     int    // of the endpoint; the hooks are on the next one
}

// File is one file to write; its name has slashes and is relative.
type File struct {
	Name    string
	Content []byte
}

// Files are those of a skeleton, ordered by name.
func Files(c Choice) ([]File, error) {
	page, err := newPage(c)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, folder := range []string{path.Join(c.Language, "base"), path.Join(c.Language, c.Store)} {
		if err := collect(folder, all); err != nil {
			return nil, err
		}
	}
	for source, name := range page.common() {
		if all[name], err = fill(source, page); err != nil {
			return nil, err
		}
	}
	return sorted(all), nil
}

// Pipeline is the file that judges an endpoint which exists already, in the
// pipelines of c; ok is false where c wants none.
func Pipeline(pipeline string) (file File, ok bool, err error) {
	name, ok := pipelineFiles[pipeline]
	if !ok {
		return File{}, false, nil
	}
	content, err := tree.ReadFile("common/existing/" + pipeline + ".yml")
	return File{name, content}, true, err
}

// pipelineFiles are where each kind of pipeline looks for its file.
var pipelineFiles = map[string]string{
	"github": ".github/workflows/destination.yml",
	"gitlab": ".gitlab-ci.yml",
	"azure":  "azure-pipelines.yml",
}

// collect adds the files of a folder; those of a store replace those of base.
func collect(folder string, into map[string][]byte) error {
	if _, err := fs.Stat(tree, folder); err != nil {
		return nil // memory is what base has
	}
	return fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := tree.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read skeleton: %w", err)
		}
		name = strings.TrimPrefix(name, folder+"/")
		for _, ending := range []string{".go", "go.mod", "go.sum"} {
			if plain := strings.TrimSuffix(name, ".txt"); strings.HasSuffix(plain, ending) {
				name = plain
			}
		}
		into[name] = content
		return nil
	})
}

// fill fills the few places of a common file that differ. The marks are << and
// >>, since pipelines have braces with a meaning of their own.
func fill(source string, data any) ([]byte, error) {
	text, err := tree.ReadFile("common/" + source)
	if err != nil {
		return nil, fmt.Errorf("read skeleton: %w", err)
	}
	t, err := template.New(source).Delims("<<", ">>").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse skeleton: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("fill skeleton: %w", err)
	}
	return b.Bytes(), nil
}

func sorted(all map[string][]byte) []File {
	files := make([]File, 0, len(all))
	for name, content := range all {
		files = append(files, File{name, content})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}
