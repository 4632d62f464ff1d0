package sources

import (
	"context"
	"net/http"
	"strings"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/problem"
)

// Execute runs statements on an emulated warehouse, all of them or none.
func (k *Sources) Execute(ctx context.Context, access Access, sql string) error {
	// A real source has an owner, and is only ever read.
	if !k.Described(access.Type).Emulated {
		return problem.Refuse(http.StatusBadRequest, "source %d is of type %s; statements run on emulated warehouses only", access.ID, access.Type)
	}
	// A statement that never ends must not hold the call, nor a restore that waits
	// for it.
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	// The credentials of the documented failing test fail here as well.
	src, err := access.Open(ctx)
	if err != nil {
		return problem.Refuse(http.StatusBadRequest, "the source cannot be opened: %s", access.Clean(err.Error()))
	}
	defer src.Close()
	if err := source.Execute(ctx, src, strings.TrimSpace(sql)); err != nil {
		return problem.InvalidField("sql", "%s", access.Clean(err.Error()))
	}
	return nil
}
