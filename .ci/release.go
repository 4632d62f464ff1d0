//go:build ignore

// Release builds the program for every platform into archives with their
// checksums: `make release`, or `go run .ci/release.go -version v1.2.3`. It
// publishes nothing. The same commit gives the same bytes on every machine with
// the same release of Go.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those of the program, os/arch.
var platforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
}

// The name of an archive holds no version, so that one URL stands for the newest
// release: …/releases/latest/download/destkit_linux_amd64.tar.gz
func archiveName(platform string) string {
	name := "destkit_" + strings.ReplaceAll(platform, "/", "_")
	if strings.HasPrefix(platform, "windows/") {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

func programName(platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return "destkit.exe"
	}
	return "destkit"
}

// sums is the name of the file with the checksums, in the form of sha256sum.
const sums = "SHA256SUMS"

func main() {
	version := flag.String("version", "", "version in the program (default: git describe)")
	output := flag.String("output", filepath.Join("build", "release"), "`folder` of the archives")
	only := flag.String("platform", "", "build this `os/arch` alone")
	binary := flag.String("binary", "", "pack this `file` instead of building; with -platform")
	list := flag.Bool("list", false, "print the names of the files of a release and build nothing")
	flag.Parse()
	if err := run(*version, *output, *only, *binary, *list); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func run(version, output, only, binary string, list bool) error {
	chosen := platforms
	if only != "" {
		if !slices.Contains(platforms, only) {
			return fmt.Errorf("unknown platform %q; platforms are %s", only, strings.Join(platforms, ", "))
		}
		chosen = []string{only}
	}
	switch {
	case list:
		for _, p := range chosen {
			fmt.Println(archiveName(p))
		}
		fmt.Println(sums)
		return nil
	case binary != "" && only == "":
		return fmt.Errorf("-binary %s needs -platform", binary)
	case version == "":
		version = git("devel", "describe", "--tags", "--always", "--dirty")
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	// What an earlier release left would stand there without a checksum.
	for _, p := range platforms {
		os.Remove(filepath.Join(output, archiveName(p)))
	}
	seconds, err := strconv.ParseInt(git("315532800", "log", "-1", "--format=%ct"), 10, 64) // 1980, the first year of zip
	if err != nil {
		return fmt.Errorf("read time of the commit: %w", err)
	}
	var lines strings.Builder
	for _, p := range chosen {
		program := binary
		if program == "" {
			if program, err = build(p, version, output); err != nil {
				return err
			}
		}
		sum, err := pack(p, program, output, time.Unix(seconds, 0).UTC())
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, archiveName(p))
		if binary == "" {
			os.RemoveAll(filepath.Dir(program))
		}
		fmt.Println(filepath.Join(output, archiveName(p)))
	}
	return os.WriteFile(filepath.Join(output, sums), []byte(lines.String()), 0o644)
}

// git returns what git says, or other where there is no repository.
func git(other string, args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if s := strings.TrimSpace(string(out)); err == nil && s != "" {
		return s
	}
	return other
}

// build returns the path of the program of one platform, in a folder of its own.
func build(platform, version, output string) (string, error) {
	dir, err := os.MkdirTemp(output, "build-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	program := filepath.Join(dir, programName(platform))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", program, "./cmd/destkit")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("build %s: %w", platform, err)
	}
	return program, nil
}

// file is one member of an archive.
type file struct {
	name, path string
	mode       os.FileMode
}

// pack writes the archive of one platform and returns its checksum in hex.
func pack(platform, program, output string, when time.Time) (string, error) {
	files := []file{
		{programName(platform), program, 0o755}, {"LICENSE", "LICENSE", 0o644}, {"README.md", "README.md", 0o644},
	}
	var b bytes.Buffer
	write := tarball
	if strings.HasPrefix(platform, "windows/") {
		write = zipped
	}
	if err := write(&b, files, when); err != nil {
		return "", fmt.Errorf("pack %s: %w", platform, err)
	}
	if err := os.WriteFile(filepath.Join(output, archiveName(platform)), b.Bytes(), 0o644); err != nil {
		return "", fmt.Errorf("write archive: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b.Bytes())), nil
}

func tarball(w io.Writer, files []file, when time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(content)), ModTime: when, Typeflag: tar.TypeReg}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(content); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func zipped(w io.Writer, files []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		header.SetMode(f.mode)
		member, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := member.Write(content); err != nil {
			return err
		}
	}
	return z.Close()
}
