package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// simulator is `destkit destsim` in a process of its own, as it is shipped.
type simulator struct {
	*server
	roots string // file; "" without TLS
	http  *http.Client
}

func (w *workshop) startSimulator(secure bool) (*simulator, error) {
	s := &simulator{http: &http.Client{Timeout: time.Minute}}
	args := []string{"destsim", "--addr", "127.0.0.1:0"}
	if secure {
		s.roots = filepath.Join(w.folder, "ca.pem")
		args = append(args, "--tls", "--ca-out", s.roots)
	}
	var err error
	if s.server, err = w.listen(w.program, args...); err != nil || !secure {
		return s, err
	}
	pem, err := os.ReadFile(s.roots)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("read the authority of the simulator: %w", err)
	}
	// The control routes stand on the same port, behind the same certificate.
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	s.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return s, nil
}

// control calls one of its control routes.
func (s *simulator) control(method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, s.url+"/_control/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call /_control/%s: %w", path, err)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("call /_control/%s: %w", path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("call /_control/%s: status %d: %s", path, response.StatusCode, tail(text)), err)
	}
	return text, nil
}

// reset forgets all records, so that every run begins alike.
func (s *simulator) reset() error {
	_, err := s.control(http.MethodPost, "reset", nil)
	return err
}

// verdicts are the records that the simulator itself has counted so far.
type verdicts struct{ stored, refused int64 }

var recordsCounted = regexp.MustCompile(`(?m)^destsim_records_total\{result="(succeeded|failed)"\} (\S+)$`)

// verdicts reads them off the metrics, which a reset does not touch: what counts is
// the difference between two readings.
func (s *simulator) verdicts() (v verdicts, err error) {
	text, err := s.control(http.MethodGet, "metrics", nil)
	if err != nil {
		return v, err
	}
	found := recordsCounted.FindAllSubmatch(text, -1)
	if len(found) != 2 {
		return v, fmt.Errorf("read the metrics of the simulator: no records in %d bytes", len(text))
	}
	for _, m := range found {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return v, fmt.Errorf("read the metrics of the simulator: %w", err)
		}
		if string(m[1]) == "failed" {
			v.refused = int64(n)
		} else {
			v.stored = int64(n)
		}
	}
	return v, nil
}
