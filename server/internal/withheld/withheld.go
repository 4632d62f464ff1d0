// Package withheld owns what those who use the API may not reach through the service:
// hosts that are not allowed, and files that hold its data or its secrets. It knows its
// own files by their content, so that a copy under another name is withheld, too. How
// connections and files are opened is left to internal/reach; it knows neither sources
// nor destinations.
package withheld

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// FilesFolder is what local_files destinations write, below the data directory.
const FilesFolder = "files"

// Parts are what the limits are made of; those that the configuration of the service has,
// too, mean the same there.
type Parts struct {
	Shared *call.Shared // its store may be opened later
	Work   *background.Work
	// AllowHosts, DenyLoopback and Listeners limit connections.
	AllowHosts   []string
	DenyLoopback bool
	Listeners    []netip.AddrPort
	// Private, AllowFiles and WorkFolder limit files; Dir is the data directory, "" in memory.
	Private, AllowFiles []string
	Dir, WorkFolder     string
	// Secrets are those of the configuration, and MasterKey is the key of 32 bytes;
	// those that are empty count for nothing.
	Secrets   []string
	MasterKey []byte
}

// Limits are what may be reached: hosts, and files.
type Limits struct {
	Network reach.Network
	Files   *reach.Files
}

// New reads the parts; an error names the entry of AllowHosts that is wrong.
func New(p Parts) (Limits, error) {
	l := Limits{Network: reach.Network{DenyLoopback: p.DenyLoopback, Own: p.Listeners}}
	for _, text := range p.AllowHosts {
		host, err := reach.ParseHost(text)
		if err != nil {
			return l, fmt.Errorf("read hosts to allow: %w", err)
		}
		l.Network.Hosts = append(l.Network.Hosts, host)
	}
	// What local_files destinations wrote below the data directory is theirs to read.
	var kept, lent []string
	if p.Dir != "" {
		kept, lent = []string{p.Dir}, []string{filepath.Join(p.Dir, FilesFolder)}
	}
	own := folders{shared: p.Shared, work: p.Work, lent: lent, allowed: p.AllowFiles, folder: p.WorkFolder}
	l.Files = &reach.Files{
		Private: p.Private, Kept: kept, Lent: lent,
		Folders: own.open,
		Secret:  secretContent(p.Secrets, p.MasterKey), Database: sqlite.ApplicationID,
	}
	return l, nil
}

// CheckHost returns what is wrong with an entry of AllowHosts.
func CheckHost(text string) error {
	_, err := reach.ParseHost(text)
	return err
}

// folders are those that sources and local_files destinations may open.
type folders struct {
	shared  *call.Shared
	work    *background.Work
	lent    []string
	allowed []string // nil: the lent ones, and folder
	folder  string
}

// open lists those that are open now.
func (f *folders) open() ([]reach.Folder, error) {
	var open []reach.Folder
	given := f.allowed
	if given == nil {
		given = f.lent
	}
	for _, path := range given {
		open = append(open, reach.Folder{Path: path})
	}
	if f.allowed != nil || f.folder == "" {
		return open, nil
	}
	others, err := store.Read(f.work.Ctx, f.shared.Store, organizations.HasOthers)
	if err != nil {
		return nil, fmt.Errorf("look for organizations of others: %w", err)
	}
	if !others {
		open = append(open, reach.Folder{Path: f.folder, Plain: true})
	}
	return open, nil
}
