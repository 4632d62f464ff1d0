# destkit: judge, simulate and explain custom destinations.
# `make` or `make help` lists what there is; `make ci` is what a pipeline runs.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
BIN         ?= bin/destkit
# Flags of make bench: BENCH='-run Goals/load -seconds=5 -rounds=1'; internal/bench/table_test.go has the names.
BENCH       ?=
UPDATE      ?=
CALLS       ?= 20
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT      ?= $(shell git rev-parse HEAD 2>/dev/null)
# Of the commit, in UTC: a commit gives the same bytes whenever it is built.
DATE        ?= $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
LDFLAGS     := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
FUZZTIME    ?= 20s
# One static program, and one way to compile for the program, the tests and the
# linters; only the race detector needs C.
export CGO_ENABLED ?= 0
# Tests keep little in memory: with fewer collections a judge's run takes a fifth
# less of a processor. Tests that measure memory set their own.
TEST_GC     ?= GOGC=400 GOMEMLIMIT=3GiB
# Many tests wait for a clock or for another process: two packages for each processor
# keep those busy. The packages that take longest are named first, and so begin first.
PACKAGES    ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))))
# What tests write lies in memory where that has room: waiting for a disk is a third of
# the time of those that write, and none of them looks at what a loss of power leaves.
# Some begin programs there, so it must allow that.
# The name stays the same, so that results are cached.
MEMORY      ?= $(shell grep -qs ' /dev/shm [^ ]* [^ ]*noexec' /proc/mounts || df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 8 * 1024 * 1024 { print "/dev/shm" }')
IN_MEMORY    = $(if $(MEMORY),tmp='$(MEMORY)/destkit-$@-$(shell id -u)-$(firstword $(shell echo '$(CURDIR)' | cksum))'; \
  mkdir -p "$$tmp"; chmod 1777 "$$tmp"; trap 'rm -rf "$$tmp"' EXIT; export GOTMPDIR="$${TMPDIR:-/tmp}" TMPDIR="$$tmp";)
# Which cells of the matrices run: a sample for the commit, or all of them (full).
TIER        ?= matrix
# Tests that begin with matrixtest.Long belong to the sample, too.
LONG         = $$(awk '/^func Test/ { name = $$2; sub(/\(.*/, "", name) } /^\tmatrixtest\.Long\(t\)$$/ { print name }' $$(git ls-files '*_test.go') | paste -sd '|')
MATRIX       = env $(TEST_GC) DESTKIT_TIER=$(TIER) $(GO) test -vet=off -count=1 -timeout 40m -run "Matrix|^($(LONG))$$"

# The linters (staticcheck among them, see .golangci.yml) run from source at this
# version; nothing has to be installed. Cold, with the linter itself built, that
# took 2 min 19 s on two cores that had other work to do; afterwards seconds.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# v2.16 and newer need a module that not every mirror of Go modules has.
GORELEASER  := $(GO) run github.com/goreleaser/goreleaser/v2@v2.15.1

.DEFAULT_GOAL := help
.PHONY: help build install release release-docs release-try release-damage demo test race matrix matrix-full zoo matrix-judges matrix-engine k6 crowd lint format docs bench performance microbench bench-peers fuzz ci ci-full clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the program into bin/destkit
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/destkit

install: ## install the program into Go's folder of programs
	$(GO) install -ldflags '$(LDFLAGS)' ./cmd/destkit

# Nothing is published. goreleaser runs from source at this version, like the linters.
release: ## make archives, packages, the image and npm packages for every platform in build/release
	$(GORELEASER) release --snapshot --clean
	cd deploy/release && $(GO) run . '$(CURDIR)'

# goreleaser packs these, which the program writes itself. gzip -n leaves out the time.
release-docs: build
	@rm -rf build/release-docs && mkdir -p build/release-docs/completions
	@$(BIN) man build/release-docs/man
	@for page in build/release-docs/man/*.1; do gzip -9 -n -c "$$page" >"$$page.gz"; done
	@for shell in bash zsh fish; do $(BIN) completion "$$shell" >"build/release-docs/completions/destkit.$$shell"; done
	@$(BIN) completion powershell >build/release-docs/completions/destkit.ps1

# Needs Debian's apt, rpm2cpio, cpio and npm; installs and removes a package, as root.
release-try: ## make the release of linux/amd64 in build/release, then install and run each file of it
	DESTKIT_RELEASE_TRY=1 $(GORELEASER) release --snapshot --clean
	cd deploy/release && $(GO) run . '$(CURDIR)' && DESTKIT_RELEASE='$(CURDIR)/build/release' $(GO) test -count=1 -v -skip '^TestTrials' .

release-damage: ## harm each file of build/release in each way that make release-try must see (five minutes)
	cd deploy/release && DESTKIT_RELEASE='$(CURDIR)/build/release' $(GO) test -count=1 -v -timeout 30m -run '^TestTrials' .

demo: build ## sync 100,000 rows to a simulated destination over https, then judge it
	$(BIN) demo

test: ## run the tests of every day; those that take long run in make matrix
	@$(IN_MEMORY) $(TEST_GC) DESTKIT_TIER=test $(GO) test -vet=off -timeout 20m -p $(PACKAGES) -parallel 4 ./server ./conformance/destination ./cmd/destkit ./loadgen ./server/internal/sync/... ./...

self: ## judge our own destination and our own service, as processes (part of make matrix-full)
	$(GO) test -count=1 -v -run '^TestMatrixScript$$/^self$$' ./cmd/destkit

# SQLite here is C code translated to Go, with locks of its own: watched by the
# detector too, it takes ten times as long, and there is nothing of ours in it.
# A program with the detector waits for a second at its end, unless it is told not to.
RACE        := GORACE=atexit_sleep_ms=0
# These and package server are where goroutines share state: calls that come at once, runs that
# are stopped while they work, limits that many wait for. Elsewhere a goroutine owns what it
# has, and the detector, which makes tests take five times as long, has nothing to see.
RACE_PACKAGES = ./destsim ./loadgen ./internal/proxy ./server/internal/sync/executor ./server/internal/sync/pace ./server/internal/sync/clock
# Of package server, the eighth, what meets other calls or runs; the rest is one client.
RACE_SERVER   = Cancel|Concurrent|Parallel|AtOnce|During|Overlap|Snapshot|Restore|Reset|Live|Journal|GoAway|Deliver|Advance|Clock|Stop
# Of the judge, one whole run, and where calls are broken off; every whole run shares the same state.
RACE_JUDGE    = CleanUpRepeats|Outage|Away|Hangs|Never|Interrupted|Timeout|TimesOut|Balancer|Resumes|LostList|KillMatrix|Ends|Example
race: ## run the short tests of the packages with shared state under the race detector
	@$(IN_MEMORY) export CGO_ENABLED=1 $(RACE) $(TEST_GC) DESTKIT_TIER=race; \
	run="$(GO) test -vet=off -race -gcflags=modernc.org/...=-race=false -short -timeout 20m -parallel 4"; \
	$$run -run '$(RACE_JUDGE)' ./conformance/destination & judge=$$!; status=0; \
	{ $$run -p $(PACKAGES) $(RACE_PACKAGES) && $$run -run '$(RACE_SERVER)' ./server; } || status=$$?; \
	wait $$judge || status=$$?; exit $$status

# The packages below a folder that have a matrix or a long test: to link the tests of all
# the others, which have nothing to run, takes a minute.
with-matrix  = $$(grep -rlE '^func Test[A-Za-z0-9_]*Matrix|^	matrixtest\.Long\(t\)$$' --include='*_test.go' $(1) | xargs -n 1 dirname | sort -u)

# Rules about time get the processors: the judges go first, one package after the
# other, and the rest takes what they leave. Its longest packages, which wait for most of
# their time, begin first.
matrix: ## run the cells of all matrices that the commit's hash and its change choose, and say why
	@$(IN_MEMORY) export DESTKIT_CHOSEN="$$(mktemp)"; status=0; \
	$(MAKE) --no-print-directory -j 2 --output-sync=target matrix-judges matrix-engine || status=$$?; \
	echo; cat "$$DESTKIT_CHOSEN"; rm -f "$$DESTKIT_CHOSEN"; exit $$status

matrix-full: ## break every rule once, kill at every point, meet every fault, in every operation
	@$(MAKE) --no-print-directory matrix TIER=full

matrix-judges:
	$(MATRIX) -p 1 -parallel 8 $(call with-matrix,./conformance)
	@$(MAKE) --no-print-directory zoo TIER=$(TIER)

zoo: TIER = full
zoo: ## judge endpoints of other authors: mistakes, habits and pairs of mistakes
	env $(TEST_GC) DESTKIT_TIER=$(TIER) $(GO) test -v -vet=off -count=1 -timeout 45m -parallel 12 -run '^TestZoo' ./conformance/internal/zoo $(if $(UPDATE),-update) \
	  | awk '/^ *--- (PASS|SKIP)|^=== |zoo_test.go:[0-9]+: [A-Za-z]/ { next } { print }'

matrix-engine:
	nice -n 10 $(MATRIX) -p 3 -parallel 8 ./cmd/destkit ./server ./server/internal/sync/executor $(call with-matrix,. --exclude-dir=conformance --exclude-dir=xk6)

# The extension of k6 is a module of its own, so that nobody who uses destkit gets k6
# with it; its go.mod is tidied (cd loadgen/xk6 && go mod tidy) whenever ours changes: make lint looks.
k6: ## test the extension of k6, with k6
	cd loadgen/xk6 && $(GO) vet ./... && $(GO) test -count=1 -timeout 30m ./...

crowd: ## 200 clients do everything at once, then all is audited; CALLS of each (20)
	@$(IN_MEMORY) DESTKIT_CROWD=$(CALLS) $(GO) test -vet=off -count=1 -v -timeout 60m -run '^TestMatrixCrowd$$' ./cmd/destkit

lint: ## check formatting, go vet (as one of the linters) and the linters
	@test -z "$$(gofmt -l .)" || { echo 'not formatted (make format):'; gofmt -l .; exit 1; }
	$(GO) run $(GOLANGCI_LINT) run ./...
	cd deploy/release && $(GO) run $(GOLANGCI_LINT) run ./...
	cd loadgen/xk6 && $(GO) list -deps ./... >/dev/null

format: ## format the source
	gofmt -w .

docs: ## write the generated tables in docs/ again
	DESTKIT_TIER=full $(GO) test -count=1 -timeout 20m -parallel 8 -run '^TestKillMatrix$$' ./conformance/destination -update
	DESTKIT_TIER=full $(GO) test -count=1 -timeout 20m -parallel 8 -run '^TestServiceKillMatrix$$' ./conformance/service -update
	$(MAKE) zoo UPDATE=1
	DESTKIT_TIER=full $(GO) test -count=1 -timeout 20m -parallel 8 -run '^Test(Crash|Disk|Fault)Matrix$$' ./server/internal/sync/executor -update
	$(GO) test -count=1 -run '^Test(FidelityLedger|Settings|EmulationPage|MatrixOutcomes)$$' ./server -update
	DESTKIT_TIER=full $(GO) test -count=1 -timeout 20m -parallel 8 -run '^TestDiskMatrixOfTheService$$' ./server -update
	$(GO) test -count=1 -run '^TestSentencesTable$$' ./conformance/service -update
	$(GO) test -count=1 -run '^Test(ProtocolPage|MistakesPage|Schemas|TerminalPicture)$$' ./cmd/destkit -update
	DESTKIT_TIER=full $(GO) test -count=1 -run '^TestMatrixNoOutputHoldsTheToken$$' ./cmd/destkit -update
	$(GO) test -count=1 -parallel 1 -run '^TestMatrixTruth$$' ./cmd/destkit/internal/loads -update

bench: ## measure the goals, against the peers that are installed; UPDATE=1 writes docs/evidence/performance.md
	$(GO) test ./internal/bench -count=1 -timeout 0 -v -run '^TestGoals$$' -measure $(if $(UPDATE),-update) $(BENCH)

performance: ## measure the goals and write docs/evidence/performance.md
	$(MAKE) bench UPDATE=1

microbench: ## run every benchmark of the packages
	PATH="$(CURDIR)/build/node_modules/.bin:$$PATH" $(GO) test -run '^$$' -timeout 90m -bench . -benchmem ./...

# wrk comes as a Debian package where apt-get is there; what cannot be installed is named
# as missing by make bench.
bench-peers: ## install what make bench compares with: wrk, fortio and Prism
	@sudo=; [ "$$(id -u)" -eq 0 ] || sudo=sudo; \
	if command -v apt-get >/dev/null; then \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends wrk; \
	else echo 'no apt-get here: install wrk yourself'; fi
	GOBIN="$(CURDIR)/build/bin" CGO_ENABLED=0 $(GO) install fortio.org/fortio@v1.66.3
	@if command -v npm >/dev/null; then npm install --no-fund --no-audit --prefix build @stoplight/prism-cli@5.14.2; \
	else echo 'no npm here: Prism is not installed'; fi

# Making an input smaller may take a minute each time, so that slow decoders would see
# hardly any input: it ends after a few tries.
# At the end of its time a fuzz test can report that time as a failure (golang/go#75804):
# without an input that fails, that is none.
fuzz: ## run every fuzz test for FUZZTIME (20s), two at a time
	@git grep -oE '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | sed -E 's#^(.*)/[^/]*:func (.*)#./\1 \2#' | xargs -P 2 -L 1 sh -c ' \
	  said=$$($(GO) test -run "^\$$" -fuzz "^$$1\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x -parallel 1 "$$0" 2>&1) && failed= || failed=yes; \
	  printf "%s %s\n%s\n" "$$0" "$$1" "$$said"; \
	  [ -z "$$failed" ] || { printf "%s\n" "$$said" | grep -q "^ *context deadline exceeded$$" && ! printf "%s\n" "$$said" | grep -q "Failing input"; } || exit 255'

ci: ## what the pipeline runs for each change
	.ci/run

ci-full: ## what the pipeline runs each night: all cells, the release, browsers, npm, Ruby, fuzz tests and k6
	.ci/run full

clean: ## remove what was built
	rm -rf bin build
