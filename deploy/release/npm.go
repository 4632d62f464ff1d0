package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// launcher finds the package of the platform and runs the program in it.
//
//go:embed destkit.js
var launcher []byte

// readme is what the registry shows.
//
//go:embed npm.md
var readme []byte

// systems and processors are the words of Node for those of Go.
var (
	systems    = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}
	processors = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

// manifest is a package.json.
type manifest struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	License              string            `json:"license"`
	Homepage             string            `json:"homepage"`
	Repository           map[string]string `json:"repository"`
	Bin                  map[string]string `json:"bin,omitempty"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	PreferUnplugged      bool              `json:"preferUnplugged,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
}

// writeNPM writes the folders of the packages below npm: one for each platform, which
// holds the program, and "destkit", which depends on all of them. npm installs the one
// that fits the machine, so nothing is downloaded by a script.
func writeNPM(root string, r release) error {
	dir := filepath.Join(r.dir, "npm")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	main := r.manifest("destkit", "Judge, simulate and measure custom destinations")
	main.Bin = map[string]string{"destkit": "bin/destkit.js"}
	main.Engines = map[string]string{"node": ">=18"}
	main.OptionalDependencies = map[string]string{}
	for _, p := range r.programs {
		system, processor := systems[p.goos], processors[p.goarch]
		if system == "" || processor == "" {
			return fmt.Errorf("no word of Node for %s/%s", p.goos, p.goarch)
		}
		platform := system + "-" + processor
		m := r.manifest("@destkit/"+platform, "The program of destkit for "+platform)
		m.OS, m.CPU, m.PreferUnplugged = []string{system}, []string{processor}, true
		text, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		name := "destkit"
		if p.goos == "windows" {
			name = "destkit.exe"
		}
		if err := writePackage(filepath.Join(dir, platform), m, map[string][]byte{
			"bin/" + name: text, "LICENSE": licence,
			"README.md": []byte("# " + m.Name + "\n\nThe program that [destkit](https://www.npmjs.com/package/destkit) runs on " + platform + ".\n"),
		}); err != nil {
			return err
		}
		main.OptionalDependencies[m.Name] = r.version
	}
	return writePackage(filepath.Join(dir, "destkit"), main, map[string][]byte{
		"bin/destkit.js": launcher, "README.md": readme, "LICENSE": licence,
	})
}

func (r release) manifest(name, description string) manifest {
	return manifest{
		Name: name, Version: r.version, Description: description, License: "Apache-2.0",
		Homepage:   "https://github.com/destkit/destkit",
		Repository: map[string]string{"type": "git", "url": "git+https://github.com/destkit/destkit.git"},
	}
}

func writePackage(dir string, m manifest, files map[string][]byte) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	files["package.json"] = append(text, '\n')
	for name, content := range files {
		path, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if filepath.Dir(name) == "bin" {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			return err
		}
	}
	return nil
}
