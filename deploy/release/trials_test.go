package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRelease makes every trial of the release in the folder DESTKIT_RELEASE.
func TestRelease(t *testing.T) {
	r := released(t)
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		t.Run(name, func(t *testing.T) {
			err := trials[name](r, t.TempDir())
			if errors.Is(err, errChanged) && os.Getenv("CI") != "true" {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func released(t *testing.T) release {
	t.Helper()
	dir := os.Getenv("DESTKIT_RELEASE")
	if dir == "" {
		t.Skip("DESTKIT_RELEASE names no folder: make release-try makes one and tries it")
	}
	r, err := readRelease(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// breakages damage the copy of a release in the working folder, and name what the trial
// of that file must say.
var breakages = []struct{ trial, name, script, says string }{
	{"checksums", "a changed file", `echo x >>destkit_linux_amd64.deb`, "SHA256SUMS says"},
	{"checksums", "a file without a checksum", `sed -i /rpm/d SHA256SUMS`, "and a release has"},
	{"action", "a changed archive", `repack true`, "it was not used"},
	{"action", "no archive", `rm destkit_linux_amd64.tar.gz`, "could not download"},
	{"archive", "no manual pages", `repack rm -r man`, "has no man/destkit.1"},
	{"archive", "an empty completion", `repack tee completions/destkit.bash </dev/null`, "has no completions/destkit.bash"},
	{"archive", "a program that ends with 1", `repack cp /bin/false destkit`, "--version: exit status 1"},
	{"archive", "the files of a user", `owner=1000 repack true`, "belongs to a user"},
	{"sbom", "a module is missing", `sed -i 's/modernc.org.sqlite"/other"/' destkit_linux_amd64.cdx.json`, "modernc.org/sqlite"},
	{"deb", "no manual page", `rebuild rm usr/share/man/man1/destkit.1.gz`, "destkit.1.gz: no such file"},
	{"deb", "another architecture", `rebuild sed -i s/amd64/arm64/ DEBIAN/control`, "arm64"},
	{"deb", "a program that is none", `rebuild cp /usr/share/common-licenses/BSD usr/bin/destkit`, "does not name destkit"},
	{"rpm", "cut short", `truncate -s -1000 destkit_linux_amd64.rpm`, "rpm -K"},
	{"npm", "no program", `rm npm/linux-x64/bin/destkit`, "is missing"},
	{"npm", "another platform", `small; sed -i s/linux/darwin/ npm/linux-x64/package.json`, "npm install"},
	{"npm", "a launcher that hides the status", `small; sed -i 's/process.exit(status.*/process.exit(0));/' npm/destkit/bin/destkit.js`, "exit status 0, not 1"},
	{"image", "a damaged layer", `layer=$(ls -S image/blobs/sha256/* | head -1); echo x >>"$layer"`, "image"},
	{"cask", "another checksum", `sed -i s/sha256/sha257/ homebrew/Casks/destkit.rb; sed -i 's/[0-9a-f]\{64\}/0/' homebrew/Casks/destkit.rb`, "with the checksum"},
	{"same program", "other bytes", `repack sh -c 'echo x >>destkit'`, "gives another program"},
}

// tools are what the scripts of breakages use.
const tools = `set -euo pipefail
repack() {
  mkdir unpacked && tar -xzf destkit_linux_amd64.tar.gz -C unpacked
  (cd unpacked && "$@")
  tar -C unpacked --owner="${owner:-0}" --group="${owner:-0}" -cf - $(ls unpacked) | gzip -1 >destkit_linux_amd64.tar.gz
}
small() { # npm takes long to pack the program itself
  mv npm/linux-x64/bin/destkit real
  printf '#!/bin/sh\nexec %s "$@"\n' "$PWD/real" >npm/linux-x64/bin/destkit
  chmod +x npm/linux-x64/bin/destkit
}
rebuild() {
  dpkg-deb -R destkit_linux_amd64.deb unpacked
  (cd unpacked && "$@")
  dpkg-deb --root-owner-group -Zgzip -z1 -b unpacked destkit_linux_amd64.deb >/dev/null
}
`

// TestTrialsSeeWhatIsBroken holds that each trial fails when its file is broken.
func TestTrialsSeeWhatIsBroken(t *testing.T) {
	r := released(t)
	seen := map[string]bool{}
	for _, b := range breakages {
		t.Run(b.trial+"/"+b.name, func(t *testing.T) {
			seen[b.trial] = true
			broken := r
			broken.dir = filepath.Join(t.TempDir(), "release")
			if _, err := command(".", "cp", "-r", "--reflink=auto", r.dir, broken.dir); err != nil {
				t.Fatal(err)
			}
			if _, err := command(broken.dir, "bash", "-c", tools+b.script); err != nil {
				t.Fatal(err)
			}
			err := trials[b.trial](broken, t.TempDir())
			switch {
			case errors.Is(err, errChanged) && os.Getenv("CI") != "true":
				t.Skip(err)
			case err == nil:
				t.Fatal("the trial finds nothing wrong")
			case !strings.Contains(err.Error(), b.says):
				t.Fatalf("the trial says %v, not %q", err, b.says)
			}
		})
	}
	for name := range trials {
		if !seen[name] {
			t.Errorf("the trial %q is never seen to fail", name)
		}
	}
}

// TestSameFlags: make build, goreleaser and deploy/Dockerfile set the same variables of
// the program, so that it names its version however it was built.
func TestSameFlags(t *testing.T) {
	variable := regexp.MustCompile(`-X (main\.\w+)=`)
	var first []byte
	for _, file := range []string{"Makefile", ".goreleaser.yaml", filepath.Join("deploy", "Dockerfile")} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		var set []byte
		for _, m := range variable.FindAllSubmatch(text, -1) {
			set = append(append(set, m[1]...), ' ')
		}
		if first == nil {
			first = set
		}
		if string(set) != "main.version main.commit main.date " || !bytes.Contains(text, []byte("-s -w -X main.version=")) {
			t.Errorf("%s sets %q", file, set)
		}
	}
}
