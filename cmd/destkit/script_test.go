package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/demo"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/testdata/violation"
)

// The transcripts in testdata run the real program in real processes.
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"destkit": main})
}

// tests end the database that some of them have started.
type tests struct{ *testing.M }

func (t tests) Run() int { return testkit.RunWithPostgres(t.M) }

func TestScript(t *testing.T) { runScripts(t, scriptsIn(t, "script")) }

// TestMatrixLongScript runs those that take a processor longer than about a second.
func TestMatrixLongScript(t *testing.T) {
	matrixtest.NotEveryDay(t)
	runSomeScripts(t, "long")
}

// TestMatrixScript runs those that take too long under the race detector.
func TestMatrixScript(t *testing.T) {
	matrixtest.NotEveryDay(t)
	runSomeScripts(t, "matrix")
}

func scriptsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// runSomeScripts runs the sample of a folder's scripts: each is a cell.
func runSomeScripts(t *testing.T, folder string) {
	t.Helper()
	files := scriptsIn(t, folder)
	var cells []matrixtest.Cell
	for _, file := range files {
		cells = append(cells, matrixtest.Cell{Name: filepath.Base(file), Files: []string{"cmd/destkit/" + filepath.ToSlash(file)}})
	}
	runs, i := matrixtest.Sample(t, []string{"cmd/destkit/"}, cells), -1
	runScripts(t, slices.DeleteFunc(files, func(string) bool { i++; return !runs[i] }))
}

func runScripts(t *testing.T, files []string) {
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			tour, err := filepath.Abs(filepath.Join("..", "..", "docs", "tour.sh"))
			env.Setenv("TOUR", tour)
			env.Setenv("WORKFLOW", filepath.Join(filepath.Dir(tour), "ci", "github-workflow.yml"))
			// godog runs go env at each start of the program where it finds it, as where
			// go test has put it into the path; the scripts need no go.
			tools := filepath.Join(os.Getenv("GOROOT"), "bin")
			path := slices.DeleteFunc(filepath.SplitList(env.Getenv("PATH")), func(folder string) bool { return folder == tools })
			env.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      cmdExits,
			"destsim":    cmdDestsim,
			"between":    cmdBetween,
			"loads":      cmdLoads,
			"ends":       cmdEnds,
			"serve":      cmdServe,
			"broken":     cmdBroken,
			"stops":      cmdStops,
			"endpoint":   cmdEndpoint,
			"interrupts": cmdInterrupts,
			"asks":       cmdAsks,
			"words":      cmdWords,
			"profiled":   cmdProfiled,
			"mailserver": cmdMailserver,
			"mail":       cmdMail,
			"private":    cmdPrivate,
			"hints":      cmdHints,
			"watches":    cmdWatches,
			"sees":       cmdSees,
		},
	})
}

// cmdExits is `exits STATUS COMMAND ARG...`: the command must end with exactly
// that status, and the commands that it offers must be commands.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	checkStatus(ts, ts.Exec(args[1], args[2:]...), want)
	checkHints(ts, args[1:], want)
}

func checkStatus(ts *testscript.TestScript, err error, want int) {
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d instead of %d", got, want)
	}
}

// cmdPrivate is `private [-except NAME] PATH...`: only the owner can read or write
// the files there (0600) or look into the folders (0700).
func cmdPrivate(ts *testscript.TestScript, neg bool, args []string) {
	except := ""
	if len(args) > 1 && args[0] == "-except" {
		except, args = args[1], args[2:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: private [-except NAME] PATH...")
	}
	for _, path := range args {
		files := 0
		ts.Check(filepath.WalkDir(ts.MkAbs(path), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			open := info.Mode().Perm()&0o077 != 0
			if open != (entry.Name() == except) {
				ts.Fatalf("%s has the mode %s", path, info.Mode())
			}
			files++
			return nil
		}))
		ts.Logf("%s: %d files and folders", path, files)
	}
}

// program prepares the program in the folder and environment of the script.
func program(ts *testscript.TestScript, args ...string) *exec.Cmd {
	cmd := exec.Command("destkit", args...)
	if umask := ts.Getenv("UMASK"); umask != "" {
		cmd = exec.Command("sh", append([]string{"-c", "umask " + umask + ` && exec destkit "$@"`, "destkit"}, args...)...)
	}
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	for _, name := range []string{"SIM_TOKEN", "CONTROL_TOKEN", "FORCE_COLOR", "SMTP_PASSWORD", "XDG_CONFIG_HOME", command.AccessTokenVariable, command.WorkspaceKeyVariable, command.MasterKeyVariable} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// running is a simulator or a service in a separate process.
type running struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	said *bytes.Buffer // standard error, once it has ended; nil where that is elsewhere
	once sync.Once
}

// simulators are all that run, by their URL.
var simulators sync.Map

// stop ends it and returns its output after the first line.
func (r *running) stop(signal os.Signal) (rest []byte, err error) {
	r.once.Do(func() {
		if signal != nil { // else it ends by itself
			_ = r.cmd.Process.Signal(signal)
		}
		rest, _ = io.ReadAll(r.out)
		err = r.cmd.Wait()
	})
	return rest, err
}

// checkHints looks at the commands that a program has offered on its standard output and,
// once it has ended, on the other.
func (r *running) checkHints(ts *testscript.TestScript, output string) {
	if r.said != nil {
		output += "\n" + r.said.String()
	}
	checkOffers(ts, output, false)
}

// cmdDestsim is `destsim NAME ARG...`: it starts the simulator on a free port
// until the script ends, and sets $NAME to its URL and $NAME_PORT to its port.
func cmdDestsim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: destsim NAME ARG...")
	}
	launch(ts, args[0], append([]string{"destsim", "--addr", "127.0.0.1:0"}, args[1:]...)...)
}

// cmdBetween is `between [-control] NAME ARG...`: a proxy that runs until the script ends;
// $NAME is its URL and, with -control, $NAME_CONTROL that of its --control-addr. `stops`
// prints what it has said; its exit status is that of its verdict.
func cmdBetween(ts *testscript.TestScript, neg bool, args []string) {
	control := len(args) > 0 && args[0] == "-control"
	if control {
		args = args[1:]
	}
	if neg || len(args) < 1 {
		ts.Fatalf("usage: between [-control] NAME ARG...")
	}
	r := launch(ts, args[0], append([]string{"proxy", "--addr", "127.0.0.1:0"}, args[1:]...)...)
	for control {
		line, err := r.out.ReadString('\n')
		ts.Check(err)
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "control "); ok {
			ts.Setenv(args[0]+"_CONTROL", url)
			control = false
		}
	}
}

// cmdLoads is `loads NAME ARG...`: a load with a page that runs until the script ends;
// $NAME is the address of the page.
func cmdLoads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: loads NAME ARG...")
	}
	cmd := program(ts, append([]string{"load", "--dashboard"}, args[1:]...)...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	cmd.Stderr = cmd.Stdout
	ts.Check(cmd.Start())
	r := &running{cmd: cmd, out: bufio.NewReader(out)}
	ts.Defer(func() { _, _ = r.stop(os.Interrupt) })
	line, err := r.out.ReadString('\n')
	ts.Check(err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "dashboard ")
	if !ok {
		ts.Fatalf("the first line is %q", line)
	}
	url = strings.TrimSuffix(url, "/")
	simulators.Store(url, r)
	ts.Setenv(args[0], url)
}

// cmdEnds is `ends NAME STATUS`: a load ends by itself, with that status.
func cmdEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME STATUS")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	r, ok := simulators.Load(ts.Getenv(args[0]))
	if !ok {
		ts.Fatalf("no program is called %s", args[0])
	}
	rest, err := r.(*running).stop(nil)
	_, _ = ts.Stdout().Write(rest)
	checkStatus(ts, err, want)
	r.(*running).checkHints(ts, string(rest))
}

// launch runs a program that listens until the script ends.
func launch(ts *testscript.TestScript, name string, args ...string) *running {
	cmd := program(ts, args...)
	var said bytes.Buffer // the script's own buffer is read while the program writes
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	r := &running{cmd: cmd, out: bufio.NewReader(out), said: &said}
	ts.Defer(func() {
		_, _ = r.stop(os.Interrupt)
		ts.Logf("[stderr of %s]\n%s", name, said.String())
	})
	line, err := r.out.ReadString('\n')
	ts.Check(err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if !ok {
		ts.Fatalf("the first line of %s is %q", args[0], line)
	}
	simulators.Store(url, r)
	ts.Setenv(name, url)
	ts.Setenv(name+"_PORT", url[strings.LastIndex(url, ":")+1:])
	return r
}

// cmdServe is `serve [-tokens] NAME ARG...`: it starts the service on a free
// port until the script ends, and sets $NAME to its URL. With -tokens it reads
// on to the tokens of the first start, prints that, and sets $NAME_TOKEN and
// $NAME_KEY.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	tokens := len(args) > 0 && args[0] == "-tokens"
	if tokens {
		args = args[1:]
	}
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve [-tokens] NAME ARG...")
	}
	r := launch(ts, args[0], append([]string{"serve", "--addr", "127.0.0.1:0"}, args[1:]...)...)
	for tokens {
		line, err := r.out.ReadString('\n')
		ts.Check(err)
		fmt.Fprint(ts.Stdout(), line)
		checkOffers(ts, line, false)
		what, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch what {
		case "personal access token":
			ts.Setenv(args[0]+"_TOKEN", value)
		case "workspace API key":
			ts.Setenv(args[0]+"_KEY", value)
			tokens = false
		}
	}
}

// cmdBroken is `broken NAME SEED ID...`: a service of this process, with the seed and the
// given workspace API key, that breaks the rules with these ids; $NAME is its URL.
func cmdBroken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: broken NAME SEED ID...")
	}
	dir := ts.Getenv("WORK")
	places := demo.Places{Service: filepath.Join(dir, args[0]), Key: filepath.Join(dir, args[0]+".key")}
	port, _, err := demo.NewService(context.Background(), places, nil, func(c *server.Config) {
		c.WorkspaceAPIKey = ts.Getenv(command.WorkspaceKeyVariable)
		ts.Check(violation.Break(c, args[2:]...))
	})
	ts.Check(err)
	ts.Defer(func() { ts.Check(port.Stop()) })
	resp, err := http.Post(port.URL+"/_control/seed", "application/yaml", strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		ts.Fatalf("the seed is answered with %s", resp.Status)
	}
	ts.Setenv(args[0], port.URL)
}

// cmdStops is `stops NAME [INT|TERM|KILL [STATUS]]`: the program must end with status 0 or
// the one given, or by the signal KILL.
func cmdStops(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: stops NAME [INT|TERM|KILL [STATUS]]")
	}
	signal, want := os.Interrupt, 0
	if len(args) > 1 {
		signal = map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}[args[1]]
	}
	if len(args) > 2 {
		var err error
		want, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	r, ok := simulators.Load(ts.Getenv(args[0]))
	if !ok {
		ts.Fatalf("no simulator is called %s", args[0])
	}
	rest, err := r.(*running).stop(signal)
	if verdict := new(exec.ExitError); errors.As(err, &verdict) && verdict.ExitCode() == 1 && bytes.Contains(rest, []byte("non-conformant")) {
		err = nil // a proxy ends with the status of its verdict
	}
	_, _ = ts.Stdout().Write(rest)
	if signal == os.Kill {
		return // in the middle of a line
	}
	checkStatus(ts, err, want)
	r.(*running).checkHints(ts, string(rest))
}

// cmdEndpoint is `endpoint NAME KIND`: it serves one of the small endpoints
// below until the script ends and sets $NAME to its URL and $NAME_PORT to its
// port.
func cmdEndpoint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: endpoint NAME KIND")
	}
	url, stop, err := startEndpoint(args[1])
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv(args[0], url)
	ts.Setenv(args[0]+"_PORT", url[strings.LastIndex(url, ":")+1:])
}

// cmdInterrupts is `interrupts SIGNAL STATUS NAME ARG...`: it runs `destkit
// ARG...`, sends INT or KILL while the endpoint $NAME of the kind "holding" has
// the first batch of records, and wants that exit status (-1: killed).
func cmdInterrupts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: interrupts SIGNAL STATUS NAME ARG...")
	}
	signal := map[string]os.Signal{"INT": os.Interrupt, "KILL": os.Kill}[args[0]]
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	h, ok := holders.Load(ts.Getenv(args[2]))
	if !ok {
		ts.Fatalf("no endpoint that holds is called %s", args[2])
	}
	cmd := program(ts, args[3:]...)
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-h.(*holder).reached:
	case err := <-ended:
		ts.Fatalf("the program ended before it wrote a record: %v", err)
	}
	ts.Check(cmd.Process.Signal(signal))
	_ = cmd.Process.Signal(signal) // as a group and its leader get it: the same wish
	checkStatus(ts, <-ended, want)
}

// cmdWords is `words FILE TEXT...`: the file must hold every text as it is.
func cmdWords(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: words FILE TEXT...")
	}
	content := ts.ReadFile(args[0])
	for _, text := range args[1:] {
		if strings.Contains(content, text) == neg {
			ts.Fatalf("%s: %q found is %v", args[0], text, !neg)
		}
	}
}

// patience is how long a script waits for an expected event.
const patience = time.Minute

// cmdAsks is `asks [-ca FILE] [-token TOKEN] [-d BODY|@FILE] [-origin] [-until TEXT] [-o FILE] URL`: a
// GET, or a POST with the body, with -origin as a form of a page of that address. With
// -until it asks again until the answer has the text. It prints the status and the body of the answer;
// the body goes into the file of -o instead.
func cmdAsks(ts *testscript.TestScript, neg bool, args []string) {
	flags := flag.NewFlagSet("asks", flag.ContinueOnError)
	ca, token, body := flags.String("ca", "", ""), flags.String("token", "", ""), flags.String("d", "", "")
	into, until, origin := flags.String("o", "", ""), flags.String("until", "", ""), flags.Bool("origin", false, "")
	ts.Check(flags.Parse(args))
	method := http.MethodGet
	if *body != "" {
		method = http.MethodPost
	}
	if file, ok := strings.CutPrefix(*body, "@"); ok {
		*body = ts.ReadFile(file)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if *ca != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(ts.ReadFile(*ca)))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	ask := func() (status int, text []byte, err error) {
		request, err := http.NewRequest(method, flags.Arg(0), strings.NewReader(*body))
		ts.Check(err)
		if *body != "" && json.Valid([]byte(*body)) {
			request.Header.Set("Content-Type", "application/json")
		}
		if *origin {
			request.Header.Set("Origin", request.URL.Scheme+"://"+request.URL.Host)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if *token != "" {
			request.Header.Set("Authorization", "Bearer "+*token)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
		ts.Check(err)
		return response.StatusCode, text, nil
	}
	status, text, err := ask()
	for from := time.Now(); err == nil && !bytes.Contains(text, []byte(*until)); status, text, err = ask() {
		if time.Since(from) > patience {
			ts.Fatalf("%s never says %q, but %d\n%s", flags.Arg(0), *until, status, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if neg {
		if err == nil {
			ts.Fatalf("answered with status %d", status)
		}
		fmt.Fprintln(ts.Stderr(), err)
		return
	}
	ts.Check(err)
	if *into != "" {
		ts.Check(os.WriteFile(ts.MkAbs(*into), text, 0o600))
		text = nil
	}
	fmt.Fprintf(ts.Stdout(), "%d\n%s", status, text)
}

// cmdProfiled is `profiled FILE`: go tool pprof must be able to read it.
func cmdProfiled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: profiled FILE")
	}
	cmd := exec.Command("go", "tool", "pprof", "-top", "-nodecount=3", "-symbolize=none", ts.MkAbs(args[0]))
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+ts.MkAbs("."))
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("%s: %v\n%s", args[0], err, out)
	}
	_, _ = ts.Stdout().Write(out)
}
