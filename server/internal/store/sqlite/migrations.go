package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"
)

// The steps in their order; the number that a name begins with is the
// version of the database after it. A published one is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// steps gives the statements of each step.
var steps = sync.OnceValues(func() (texts []string, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
})

// Version is the one that this program makes and understands.
func Version() int64 {
	texts, _ := steps()
	return int64(len(texts))
}

// ErrNewer refuses data of a version that this program does not know.
var ErrNewer error = &unfit{"made by a newer version of the program"}

// newer names the version that the data has.
func newer(version int64) error {
	return fmt.Errorf("%w: the data has version %d, this program knows versions up to %d; start one that is as new as the data", ErrNewer, version, Version())
}
