package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// Each trial installs or unpacks one kind of file in the folder of a release and uses it
// as a reader of docs/releasing.md would. It returns what is wrong with the file.

// platform is the one that is tried, and stem how its files begin.
const (
	platform = "linux/amd64"
	stem     = "destkit_linux_amd64"
)

// imageLimit is the most that the unpacked image may take.
const imageLimit = 60 << 20

// trial looks at the files in r.dir; tmp is an empty folder.
type trial func(r release, tmp string) error

var trials = map[string]trial{
	"checksums":    tryChecksums,
	"action":       tryAction,
	"archive":      tryArchive,
	"sbom":         tryBill,
	"deb":          tryDeb,
	"rpm":          tryRPM,
	"npm":          tryNPM,
	"image":        tryImage,
	"cask":         tryCask,
	"same program": tryAgain,
}

// command runs a command in dir and returns what it prints.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return finish(cmd)
}

func finish(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return out.String(), nil
}

// tryProgram asks a program for its version and what one page of it says.
func (r release) tryProgram(dir, program string, before ...string) error {
	words := append(slices.Clone(before), program)
	out, err := command(dir, words[0], append(words[1:], "--version")...)
	if err != nil {
		return err
	}
	if want := r.versionLine(); !strings.HasPrefix(out, want) {
		return fmt.Errorf("%s --version prints %q, not %q", program, strings.TrimSpace(out), want)
	}
	out, err = command(dir, words[0], append(words[1:], "explain", "RES-002")...)
	if err == nil && !strings.Contains(out, "RES-002") {
		err = fmt.Errorf("%s explain RES-002 prints %q", program, out)
	}
	return err
}

// versionLine is how the output of --version begins.
func (r release) versionLine() string {
	return fmt.Sprintf("destkit %s (commit %s, %s, go", r.inside(), r.commit[:12], r.when.Format(time.RFC3339))
}

// inside is the version in the program, which names changes that are not committed.
func (r release) inside() string {
	if dirty := "v" + r.version + "-dirty"; slices.ContainsFunc(r.programs, func(p program) bool {
		text, err := os.ReadFile(p.path)
		return err == nil && bytes.Contains(text, []byte(dirty))
	}) {
		return dirty
	}
	return "v" + r.version
}

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  (\S+)$`)

// tryChecksums: SHA256SUMS names every file of the release, with its checksum.
func tryChecksums(r release, _ string) error {
	text, err := os.ReadFile(filepath.Join(r.dir, "SHA256SUMS"))
	if err != nil {
		return err
	}
	var named []string
	for line := range strings.Lines(string(text)) {
		m := sumLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return fmt.Errorf("SHA256SUMS has the line %q", line)
		}
		content, err := os.ReadFile(filepath.Join(r.dir, m[2]))
		if err != nil {
			return err
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != m[1] {
			return fmt.Errorf("%s has the checksum %s, SHA256SUMS says %s", m[2], sum, m[1])
		}
		named = append(named, m[2])
	}
	var there []string
	for _, p := range r.programs {
		own := "destkit_" + p.goos + "_" + p.goarch
		endings := []string{".tar.gz", ".cdx.json"}
		switch p.goos {
		case "windows":
			endings[0] = ".zip"
		case "linux":
			endings = append(endings, ".deb", ".rpm")
		}
		for _, ending := range endings {
			there = append(there, own+ending)
		}
	}
	slices.Sort(named)
	slices.Sort(there)
	if !slices.Equal(named, there) {
		return fmt.Errorf("SHA256SUMS names %q, and a release has %q", named, there)
	}
	return nil
}

// documents are what an archive holds beside the program.
var documents = []string{
	"LICENSE", "README.md", "CHANGELOG.md", "man/destkit.1", "man/destkit-conform.1",
	"completions/destkit.bash", "completions/destkit.zsh", "completions/destkit.fish", "completions/destkit.ps1",
}

// tryArchive: the archive unpacks into what it should hold, and nothing in it belongs to
// a user of the machine that packed it. Its program judges the destination that it
// simulates, as the README says.
func tryArchive(r release, tmp string) error {
	archive := filepath.Join(r.dir, stem+".tar.gz")
	listing, err := command(tmp, "tar", "--numeric-owner", "-tvzf", archive)
	if err != nil {
		return err
	}
	for line := range strings.Lines(listing) {
		if !strings.Contains(line, "root/root") && !strings.Contains(line, " 0/0 ") {
			return fmt.Errorf("a member of the archive belongs to a user: %s", line)
		}
	}
	if _, err := command(tmp, "tar", "-xzf", archive); err != nil {
		return err
	}
	for _, name := range documents {
		if info, err := os.Stat(filepath.Join(tmp, name)); err != nil || info.Size() == 0 {
			return fmt.Errorf("the archive has no %s", name)
		}
	}
	if err := r.tryProgram(tmp, "./destkit"); err != nil {
		return err
	}
	// A shell that gets the completion completes.
	out, err := command(tmp, "bash", "-c", "PATH=$PWD:$PATH; source completions/destkit.bash && complete -p destkit && destkit __complete conf")
	if err == nil && !strings.Contains(out, "conform\t") {
		err = fmt.Errorf("the completion of bash offers %q", out)
	}
	if err != nil {
		return err
	}
	return judge(tmp, filepath.Join(tmp, "destkit"))
}

var listening = regexp.MustCompile(`listening (http://\S+?)/?\s`)

// judge has a program judge the destination that it simulates, once correct and once
// with a rule broken, and end on SIGTERM.
func judge(dir, program string) error {
	for _, c := range []struct {
		broken []string
		status int
	}{{nil, 0}, {[]string{"--violate", "RES-002"}, 1}} {
		cmd := exec.Command(program, append([]string{"destsim", "--addr", "127.0.0.1:0"}, c.broken...)...)
		cmd.Dir = dir
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		var said []byte
		for b := make([]byte, 1); !bytes.Contains(said, []byte("\n")); {
			if _, err := out.Read(b); err != nil {
				return fmt.Errorf("destsim printed %q and ended: %w", said, errors.Join(err, cmd.Wait()))
			}
			said = append(said, b...)
		}
		m := listening.FindSubmatch(said)
		if m == nil {
			return fmt.Errorf("destsim printed %q", said)
		}
		go io.Copy(io.Discard, out)
		url := string(m[1]) + "/"
		_, err = command(dir, program, "conform", url, "--write", "--object", "contact", "--select", "RES-*", "--readback-url", url+"_control/readback")
		if status := statusOf(err); status != c.status {
			err = fmt.Errorf("conform of destsim %q: exit status %d, not %d: %w", c.broken, status, c.status, err)
		} else {
			err = nil
		}
		cmd.Process.Signal(syscall.SIGTERM)
		if ended := cmd.Wait(); err == nil && ended != nil {
			err = fmt.Errorf("destsim after SIGTERM: %w", ended)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// statusOf is the exit status of a command, -1 when it did not start.
func statusOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// tryAction: the first step of the action installs the program from a server that has the
// files of the release.
func tryAction(r release, tmp string) error {
	server := httptest.NewTLSServer(http.StripPrefix("/releases/download/v"+r.version+"/", http.FileServer(http.Dir(r.dir))))
	defer server.Close()
	roots := filepath.Join(tmp, "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		return err
	}
	output := filepath.Join(tmp, "output")
	cmd := exec.Command("bash", filepath.Join("..", "..", ".ci", "action", "install.sh"))
	cmd.Env = append(os.Environ(), "DESTKIT_RELEASES_URL="+server.URL+"/releases", "CURL_CA_BUNDLE="+roots, "INPUT_VERSION=v"+r.version,
		"RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+tmp, "GITHUB_OUTPUT="+output, "GITHUB_PATH="+filepath.Join(tmp, "path"))
	if _, err := finish(cmd); err != nil {
		return err
	}
	text, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	program, found := strings.CutPrefix(strings.TrimSpace(string(text)), "program=")
	if !found {
		return fmt.Errorf("the action puts out %q", text)
	}
	return r.tryProgram(tmp, program)
}

// tryBill: the bill of materials names every module in the program, with its version.
func tryBill(r release, tmp string) error {
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	if err := readJSON(filepath.Join(r.dir, stem+".cdx.json"), &bill); err != nil {
		return err
	}
	if bill.BOMFormat != "CycloneDX" || bill.SpecVersion == "" {
		return fmt.Errorf("the bill of materials is no CycloneDX: %q %q", bill.BOMFormat, bill.SpecVersion)
	}
	if c := bill.Metadata.Component; c.Name != "github.com/destkit/destkit" || c.Version != "v"+r.version {
		return fmt.Errorf("the bill of materials is that of %s %s", c.Name, c.Version)
	}
	named := map[string]string{}
	for _, c := range bill.Components {
		named[c.Name] = c.Version
	}
	if _, err := command(tmp, "tar", "-xzf", filepath.Join(r.dir, stem+".tar.gz"), "destkit"); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(filepath.Join(tmp, "destkit"))
	if err != nil {
		return err
	}
	if len(info.Deps) < 20 {
		return fmt.Errorf("the program names %d modules", len(info.Deps))
	}
	for _, dep := range info.Deps {
		if named[dep.Path] != dep.Version {
			return fmt.Errorf("the bill of materials has %s %q, the program %s", dep.Path, named[dep.Path], dep.Version)
		}
	}
	return nil
}

// packaged are the files of both packages, beside the completion of zsh.
var packaged = []string{
	"usr/bin/destkit", "usr/share/man/man1/destkit.1.gz", "usr/share/man/man1/destkit-conform.1.gz",
	"usr/share/bash-completion/completions/destkit", "usr/share/fish/vendor_completions.d/destkit.fish",
}

// tryFiles: the files of a package are below root, and can be read.
func tryFiles(root string, names ...string) error {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(name, ".gz"):
			unpacked, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if text, err = io.ReadAll(unpacked); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if !bytes.Contains(text, []byte(".SH DESCRIPTION")) {
				return fmt.Errorf("%s is no manual page", name)
			}
		case !bytes.Contains(text, []byte("destkit")):
			return fmt.Errorf("%s does not name destkit", name)
		}
	}
	return nil
}

// tryDeb: apt installs the package and removes it again, with all that it brought.
func tryDeb(r release, tmp string) (err error) {
	deb := filepath.Join(r.dir, stem+".deb")
	files := append([]string{"usr/share/zsh/vendor-completions/_destkit", "usr/share/doc/destkit/copyright"}, packaged...)
	// What is in it, because a system can be told to leave out manual pages.
	if _, err := command(tmp, "dpkg-deb", "-x", deb, tmp); err != nil {
		return err
	}
	if err := tryFiles(tmp, files...); err != nil {
		return err
	}
	if _, err := os.Stat("/usr/bin/destkit"); err == nil {
		return errors.New("/usr/bin/destkit is there already: this machine has destkit installed")
	}
	apt := func(args ...string) error {
		cmd := exec.Command("apt-get", append([]string{"-y", "-o", "DPkg::Lock::Timeout=600"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		_, err := finish(cmd)
		return err
	}
	defer func() {
		if left := apt("purge", "destkit"); left != nil {
			err = errors.Join(err, left)
			return
		}
		for _, name := range files {
			if _, stat := os.Stat("/" + name); stat == nil {
				err = errors.Join(err, fmt.Errorf("/%s is left behind by apt-get purge", name))
			}
		}
	}()
	if err := apt("install", "--no-install-recommends", deb); err != nil {
		return err
	}
	fields, err := command(tmp, "dpkg-query", "-W", "-f", "${Status}|${Architecture}|${Version}|${Maintainer}|${Depends}", "destkit")
	if err != nil {
		return err
	}
	// dpkg sorts ~ before everything: a snapshot is older than the release.
	want := "install ok installed|amd64|" + strings.Replace(r.version, "-", "~", 1) + "|"
	if !strings.HasPrefix(fields, want) || !strings.HasSuffix(fields, ">|") {
		return fmt.Errorf("dpkg says %q, not %q with a maintainer and without dependencies", fields, want)
	}
	listed, err := command(tmp, "dpkg", "-L", "destkit")
	if err != nil {
		return err
	}
	for _, name := range files {
		if !slices.Contains(strings.Split(listed, "\n"), "/"+name) {
			return fmt.Errorf("dpkg -L does not list /%s", name)
		}
	}
	if _, err := command(tmp, "dpkg", "--verify", "destkit"); err != nil {
		return err
	}
	return r.tryProgram(tmp, "/usr/bin/destkit")
}

// tryRPM: rpm reads the package, and what is in it runs.
func tryRPM(r release, tmp string) error {
	file := filepath.Join(r.dir, stem+".rpm")
	fields, err := command(tmp, "rpm", "--nosignature", "-qp", "--qf", "%{NAME}|%{VERSION}|%{ARCH}|%{LICENSE}", file)
	if err != nil {
		return err
	}
	if want := "destkit|" + strings.Replace(r.version, "-", "~", 1) + "|x86_64|Apache-2.0"; fields != want {
		return fmt.Errorf("rpm says %q, not %q", fields, want)
	}
	// All digests of the package are right, without which nothing installs it.
	if out, err := command(tmp, "rpm", "-K", "--nosignature", "--define", "_dbpath "+filepath.Join(tmp, "db"), file); err != nil || !strings.Contains(out, "digests OK") {
		return fmt.Errorf("rpm -K: %s: %w", out, err)
	}
	// rpm2cpio of Debian ends with 1 after every package that rpm did not make itself; that
	// this one is whole has just been seen. Its names begin with a slash.
	if _, err := command(tmp, "bash", "-c", `rpm2cpio "$0" | cpio -idm --quiet --no-absolute-filenames`, file); err != nil {
		return err
	}
	if err := tryFiles(tmp, append([]string{"usr/share/zsh/site-functions/_destkit"}, packaged...)...); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(tmp, "usr/share/licenses/destkit/LICENSE")); err != nil || info.Size() == 0 {
		return errors.New("the package has no licence")
	}
	return r.tryProgram(tmp, "./usr/bin/destkit")
}

// tryNPM: the packages that npm packs are installed into an empty folder, without a
// registry, and run by npx.
func tryNPM(r release, tmp string) error {
	var packed []string
	for _, name := range []string{"destkit", "linux-x64"} {
		out, err := command(tmp, "npm", "pack", "--silent", filepath.Join(r.dir, "npm", name))
		if err != nil {
			return err
		}
		packed = append(packed, filepath.Join(tmp, strings.TrimSpace(out)))
	}
	install := func(folder string, args ...string) (string, error) {
		dir := filepath.Join(tmp, folder)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return dir, err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o644); err != nil {
			return dir, err
		}
		_, err := command(dir, "npm", append([]string{"install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"}, args...)...)
		return dir, err
	}
	dir, err := install("whole", packed...)
	if err != nil {
		return err
	}
	if err := r.tryProgram(dir, "destkit", "npx", "--no-install"); err != nil {
		return err
	}
	if err := r.tryProgram(dir, "destkit", "npm", "exec", "--offline", "--"); err != nil {
		return err
	}
	// Statuses, output and signals are those of the program.
	if err := judge(dir, filepath.Join(dir, "node_modules", ".bin", "destkit")); err != nil {
		return err
	}
	// Without the package of the platform a message says what is missing.
	dir, err = install("part", "--omit=optional", packed[0])
	if err != nil {
		return err
	}
	out, err := command(dir, filepath.Join(dir, "node_modules", ".bin", "destkit"), "--version")
	if statusOf(err) != 3 || !strings.Contains(out, "the package @destkit/linux-x64 is missing") {
		return fmt.Errorf("without its platform, destkit says %q: %w", out, err)
	}
	return nil
}

// tryImage: the image is whole, small and without root, agrees with deploy/Dockerfile,
// and its entry point runs in its file system.
func tryImage(r release, tmp string) error {
	index, err := layout.ImageIndexFromPath(filepath.Join(r.dir, "image"))
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	manifests, err := index.IndexManifest()
	if err != nil {
		return err
	}
	var image = -1
	for i, m := range manifests.Manifests {
		if m.Platform != nil && m.Platform.String() == platform {
			image = i
		}
	}
	if image < 0 {
		return fmt.Errorf("there is no image for %s", platform)
	}
	img, err := index.Image(manifests.Manifests[image].Digest)
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	c := config.Config
	var words []string
	words = append(words, "USER "+c.User, fmt.Sprintf("ENTRYPOINT %q", c.Entrypoint))
	for _, e := range c.Env {
		words = append(words, "ENV "+e)
	}
	for port := range c.ExposedPorts {
		words = append(words, "EXPOSE "+strings.TrimSuffix(port, "/tcp"))
	}
	docker, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	if err != nil {
		return err
	}
	_, last, _ := strings.Cut(string(docker), "\nFROM scratch\n")
	var wanted []string
	for line := range strings.Lines(last) {
		line = strings.TrimSpace(line)
		if word, _, _ := strings.Cut(line, " "); slices.Contains([]string{"USER", "ENTRYPOINT", "ENV", "EXPOSE", "CMD", "WORKDIR", "VOLUME"}, word) {
			wanted = append(wanted, line)
		}
	}
	slices.Sort(words)
	slices.Sort(wanted)
	if !slices.Equal(words, wanted) {
		return fmt.Errorf("the image has %q, deploy/Dockerfile %q", words, wanted)
	}
	if c.Labels["org.opencontainers.image.version"] != r.version || !config.Created.Equal(r.when) {
		return fmt.Errorf("the image is labelled %q of %s", c.Labels, config.Created)
	}
	size, err := unpack(mutate.Extract(img), tmp)
	if err != nil {
		return err
	}
	if size > imageLimit {
		return fmt.Errorf("the image takes %d MB", size>>20)
	}
	roots, err := os.ReadFile(filepath.Join(tmp, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		return err
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots) || bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 80 {
		return errors.New("the image has no certificates")
	}
	zones, err := zip.OpenReader(filepath.Join(tmp, "zoneinfo.zip"))
	if err != nil {
		return fmt.Errorf("time zones: %w", err)
	}
	defer zones.Close()
	if _, err := zones.Open("Europe/Berlin"); err != nil {
		return fmt.Errorf("time zones: %w", err)
	}
	if os.Getuid() != 0 {
		return errors.New("only root can run a program in another root: run this as root")
	}
	for _, args := range [][]string{{"--version"}, {"init", "/tmp/endpoint", "--lang", "go"}} {
		cmd := exec.Command(c.Entrypoint[0], args...)
		cmd.Dir, cmd.Env = "/", c.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: tmp, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		out, err := finish(cmd)
		if err != nil {
			return err
		}
		if args[0] == "--version" && !strings.HasPrefix(out, r.versionLine()) {
			return fmt.Errorf("the image prints %q, not %q", out, r.versionLine())
		}
	}
	info, err := os.Stat(filepath.Join(tmp, "tmp/endpoint/go.mod"))
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 65532 {
		return fmt.Errorf("the program ran as user %d", owner)
	}
	return nil
}

// unpack writes a file system below dir and returns the bytes of its files.
func unpack(from io.ReadCloser, dir string) (size int64, err error) {
	defer from.Close()
	// The folder of a test is private.
	for parent := dir; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			return 0, err
		}
	}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if err == io.EOF {
			return size, nil
		} else if err != nil {
			return size, err
		}
		path := filepath.Join(dir, filepath.Clean("/"+header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			if err := os.MkdirAll(path, 0o755); err != nil {
				return size, err
			}
		case tar.TypeReg:
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return size, err
			}
			text, err := io.ReadAll(r)
			if err != nil {
				return size, err
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return size, err
			}
			size += int64(len(text))
		default:
			return size, fmt.Errorf("%s is neither file nor folder", header.Name)
		}
		if err := os.Chmod(path, header.FileInfo().Mode()); err != nil {
			return size, err
		}
	}
}

// tryCask: the cask of Homebrew asks for archives of this release, with their checksums.
// Nothing here can install it.
func tryCask(r release, _ string) error {
	text, err := os.ReadFile(filepath.Join(r.dir, "homebrew", "Casks", "destkit.rb"))
	if err != nil {
		return err
	}
	for _, p := range r.programs {
		if p.goos == "windows" {
			continue
		}
		name := "destkit_" + p.goos + "_" + p.goarch + ".tar.gz"
		archive, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(archive)); !bytes.Contains(text, []byte(sum)) || !bytes.Contains(text, []byte(name)) {
			return fmt.Errorf("the cask does not ask for %s with the checksum %s", name, sum)
		}
	}
	return nil
}

// errChanged is why there is nothing to compare.
var errChanged = errors.New("the tree has changes that are not committed: the same commit gives the same program")

// tryAgain: the same commit in another folder gives the same program.
func tryAgain(r release, tmp string) error {
	if strings.HasSuffix(r.inside(), "-dirty") {
		return errChanged
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	clone := filepath.Join(tmp, "elsewhere")
	if _, err := command(tmp, "git", "clone", "--quiet", "--no-checkout", "--shared", root, clone); err != nil {
		return err
	}
	if _, err := command(clone, "git", "checkout", "--quiet", r.commit); err != nil {
		return err
	}
	again := filepath.Join(tmp, "again")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", fmt.Sprintf("-s -w -X main.version=v%s -X main.commit=%s -X main.date=%s",
		r.version, r.commit, r.when.Format(time.RFC3339)), "-o", again, "./cmd/destkit")
	build.Dir, build.Env = clone, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if _, err := finish(build); err != nil {
		return err
	}
	if _, err := command(tmp, "tar", "-xzf", filepath.Join(r.dir, stem+".tar.gz"), "destkit"); err != nil {
		return err
	}
	have, err := os.ReadFile(filepath.Join(tmp, "destkit"))
	if err != nil {
		return err
	}
	want, err := os.ReadFile(again)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return errors.New("the same commit in another folder gives another program")
	}
	return nil
}
