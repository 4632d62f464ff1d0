package configfile

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/yamldoc"
)

// Read decodes one YAML file into dst, a pointer to a struct, strictly (see
// yamldoc.Decode). An empty file leaves dst as it was. Every error is a usage
// error.
func Read(file string, dst any) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return exit.Usage(fmt.Errorf("read file: %w", err))
	}
	return Decode(file, src, dst)
}

// Decode is Read on bytes; file is used in messages only.
func Decode(file string, src []byte, dst any) error {
	if err := yamldoc.Decode(file, src, dst); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// parseYAML returns the body of the only document of src, nil when there is
// none.
func parseYAML(file string, src []byte) (ast.Node, error) {
	body, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, exit.Usage(err)
	}
	return body, nil
}

// positionError is a usage error that points at one token.
func positionError(file string, src []byte, tk *token.Token, message string) error {
	return exit.Usage(yamldoc.At(file, src, tk, message))
}
