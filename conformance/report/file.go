package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/wholefile"
)

// WriteFile writes r in the named format to a file. The file appears whole or
// not at all: the bytes go to a file beside it that is renamed at the end, so
// that an error leaves what stood there before. A device or a pipe, which
// cannot be renamed onto, is written directly.
func WriteFile(format, path string, r *conformance.Report) error {
	return Options{}.WriteFile(format, path, r)
}

// WriteFile is the function [WriteFile] with choices.
func (o Options) WriteFile(format, path string, r *conformance.Report) error {
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("write report: unknown format %q, known are %s", format, strings.Join(Formats(), ", "))
	}
	// Rendering first keeps a fault of the writer apart from one of the disk.
	var b bytes.Buffer
	if err := o.Write(format, &b, r); err != nil {
		return err
	}
	err := wholefile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s report to %s: %w", format, path, err)
}
