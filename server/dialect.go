package server

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
)

// Dialect says whom the service resembles where its two authorities differ.
type Dialect string

// DialectSpec follows the specification to the letter, DialectLive what real
// clients were seen to depend on.
const (
	DialectSpec Dialect = "spec"
	DialectLive Dialect = "live"
)

// switches are all places where the dialects differ; the names stand in
// x-differences of the OpenAPI document, and a test holds the two together.
type switches struct {
	SyncStatusCase         bool `switch:"sync-status-case"`
	PartialSyncUpdate      bool `switch:"partial-sync-update"`
	ErrorStatusInteger     bool `switch:"error-status-integer"`
	ErrorProblems          bool `switch:"error-problems"`
	RulesAsList            bool `switch:"rules-as-list"`
	NextInEveryList        bool `switch:"next-in-every-list"`
	BareKeys               bool `switch:"bare-keys"`
	UpdateOnlyProperties   bool `switch:"update-only-properties"`
	UnknownFields          bool `switch:"unknown-fields"`
	OrganizationDeprecated bool `switch:"organization-endpoints-deprecated"`
}

// switched returns the switches of a dialect; true is the live behaviour.
func (d Dialect) switched() (switches, error) {
	switch d {
	case "", DialectSpec:
		return switches{}, nil
	case DialectLive:
		// Without names, so that a new switch does not compile until it stands
		// here.
		return switches{true, true, true, true, true, true, true, true, true, true}, nil
	}
	return switches{}, fmt.Errorf("choose dialect: %q is neither %s nor %s", string(d), DialectSpec, DialectLive)
}

// Differences lists where the dialects differ, in the order of the OpenAPI
// document.
func Differences() []openapi.Difference { return openapi.Differences() }

// syncStatus is a status as the dialect writes it (facts B4).
func (s switches) syncStatus(status string) string {
	if s.SyncStatusCase {
		return status
	}
	return strings.ToLower(status)
}

// fields sets the form of every rule.
func (s switches) fields(fields []api.ConfigField) []api.ConfigField {
	out := make([]api.ConfigField, len(fields))
	for i, f := range fields {
		f.Rules.AsList = s.RulesAsList
		if f.PossibleValues == nil {
			f.PossibleValues = []string{}
		}
		out[i] = f
	}
	return out
}

// destination leaves out what the specification shows in update replies only
// (spec 2.2, 2.3). The objects are copied, since they are shared with a cache.
func (s switches) destination(d *api.Destination, update bool) {
	if update || s.UpdateOnlyProperties {
		return
	}
	d.IsFileSystemDestination = nil
	for i, o := range d.Objects {
		d.Objects[i] = s.object(o)
	}
}

// object is the same for one destination object.
func (s switches) object(o *api.DestinationObject) *api.DestinationObject {
	if s.UpdateOnlyProperties {
		return o
	}
	shown := *o
	shown.PrimaryIdentifierMappingAttributes = nil
	shown.SupportedCustomFieldTypes = nil
	shown.IsAudienceDestination = nil
	return &shown
}
