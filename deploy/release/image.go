package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// writeImage writes an OCI layout into the folder "image": one image for each program
// for Linux, from scratch, with what deploy/Dockerfile puts into one. A test compares the
// two.
func writeImage(r release) error {
	dir := filepath.Join(r.dir, "image")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	zones, err := timeZones()
	if err != nil {
		return err
	}
	system, err := layer(r.when, []file{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "tmp/", mode: 0o1777},
		{name: "data/", mode: 0o1777}, // for volumes: a new one is as the folder below it
		{name: "zoneinfo.zip", mode: 0o644, content: zones},
	})
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.programs {
		if p.goos != "linux" {
			continue
		}
		image, err := r.image(p, system)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.goos, Architecture: p.goarch}},
		})
	}
	_, err = layout.Write(dir, index)
	return err
}

// image is that of one program.
func (r release) image(p program, system v1.Layer) (v1.Image, error) {
	text, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	own, err := layer(r.when, []file{{name: "destkit", mode: 0o755, content: text}})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.when}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: system, History: v1.History{Created: created, CreatedBy: "certificates and time zones"}},
		mutate.Addendum{Layer: own, History: v1.History{Created: created, CreatedBy: "destkit"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.goos, p.goarch, created
	config.Config = v1.Config{
		Entrypoint:   []string{"/destkit"},
		Env:          []string{"ZONEINFO=/zoneinfo.zip"},
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "destkit",
			"org.opencontainers.image.description": "Judge, simulate and measure custom destinations",
			"org.opencontainers.image.source":      "https://github.com/destkit/destkit",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.commit,
			"org.opencontainers.image.created":     r.when.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(image, config)
}

// file is one member of a layer; a folder ends in a slash.
type file struct {
	name    string
	mode    int64
	content []byte
}

func layer(when time.Time, files []file) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: when, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// authorities are the roots that Mozilla trusts, in PEM. Those that it trusts only for
// some certificates are left out: a file cannot say which.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}

// timeZones are those that come with Go.
func timeZones() ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
}
