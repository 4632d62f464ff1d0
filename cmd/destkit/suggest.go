package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/internal/suggest"
)

// suggestFlag adds the flag that was probably meant to an error about an
// unknown one.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := suggest.Word(unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return err
}
