package main

import (
	"fmt"
	"regexp"
)

// find is the first group of a pattern in a text.
func find(pattern *regexp.Regexp, text []byte) (float64, error) {
	m := pattern.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("read the output: no %s", pattern)
	}
	return number(string(m[1]))
}

// sum adds all groups of all matches.
func sum(pattern *regexp.Regexp, text []byte) (n int64, err error) {
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		for _, group := range m[1:] {
			v, err := number(string(group))
			if err != nil {
				return n, fmt.Errorf("read the output: %w", err)
			}
			n += int64(v)
		}
	}
	return n, nil
}

// Each parser reads two things: the rate, and how many requests were not answered
// with 200. Lines about errors stand there only where there were some.

var (
	wrkRate   = regexp.MustCompile(`(?m)^Requests/sec:\s+([\d.]+)`)
	wrkStatus = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	wrkSocket = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
)

func parseWrk(text []byte) (t tally, err error) {
	if t.rate, err = find(wrkRate, text); err != nil {
		return t, err
	}
	status, err := sum(wrkStatus, text)
	if err != nil {
		return t, err
	}
	t.bad, err = sum(wrkSocket, text)
	t.bad += status
	return t, err
}

var (
	fortioRate = regexp.MustCompile(`All done \d+ calls .*, ([\d.]+) qps`)
	// All codes but 200; -1 is a connection that broke.
	fortioCodes = regexp.MustCompile(`(?m)^Code\s+(?:[013-9-]\d*|2(?:0[1-9]|[1-9]\d))\s*: (\d+)`)
)

func parseFortio(text []byte) (t tally, err error) {
	if t.rate, err = find(fortioRate, text); err != nil {
		return t, err
	}
	t.bad, err = sum(fortioCodes, text)
	return t, err
}

var (
	h2loadRate   = regexp.MustCompile(`finished in [^,]+, ([\d.]+) req/s`)
	h2loadFailed = regexp.MustCompile(`requests: .* (\d+) failed, (\d+) errored, (\d+) timeout`)
	h2loadCodes  = regexp.MustCompile(`status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
)

func parseH2load(text []byte) (t tally, err error) {
	if t.rate, err = find(h2loadRate, text); err != nil {
		return t, err
	}
	failed, err := sum(h2loadFailed, text)
	if err != nil {
		return t, err
	}
	codes, err := sum(h2loadCodes, text)
	t.bad = max(failed, codes) // bad codes are failed requests, too
	return t, err
}

var (
	heyRate = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	// Codes other than 200, and below "Error distribution" one count for each error.
	heyBad = regexp.MustCompile(`(?m)^\s+\[(?:[013-9]\d\d|20[1-9]|2[1-9]\d)\]\s+(\d+) responses|^\s+\[(\d+)\]\s+(?:Post|Get)\b`)
)

func parseHey(text []byte) (t tally, err error) {
	if t.rate, err = find(heyRate, text); err != nil {
		return t, err
	}
	for _, m := range heyBad.FindAllSubmatch(text, -1) {
		n, err := number(string(m[1]) + string(m[2])) // one of them is empty
		if err != nil {
			return t, fmt.Errorf("read the output: %w", err)
		}
		t.bad += int64(n)
	}
	return t, nil
}

var (
	k6Rate = regexp.MustCompile(`http_reqs\.*:\s+\d+\s+([\d.]+)/s`)
	// k6 counts what is neither 2xx nor 3xx, broken connections too.
	k6Failed = regexp.MustCompile(`http_req_failed\.*:\s+[\d.]+%\s+(\d+) out of`)
)

func parseK6(text []byte) (t tally, err error) {
	if t.rate, err = find(k6Rate, text); err != nil {
		return t, err
	}
	bad, err := find(k6Failed, text)
	t.bad = int64(bad)
	return t, err
}
