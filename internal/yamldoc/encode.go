package yamldoc

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// Encode writes a value as a document that Decode reads back.
func Encode(v any) ([]byte, error) {
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	return text, nil
}
