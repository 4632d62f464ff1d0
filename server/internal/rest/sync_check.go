package rest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// check holds a configuration against its destination object and its
// source, and reports all problems together (spec 2.6 to 2.8, 4.1).
func (h *Handlers) check(c *call.Call, y *store.Sync, before sources.Origin, existingAlerts []int64) error {
	folded, err := h.Sources.FoldSegment(c, &y.Config)
	if err != nil {
		return err
	}
	subject := mapping.Subject{Config: y.Config, Present: c.Keys(), ExistingAlerts: existingAlerts}
	// Both ends first: the rules about mappings need the columns and fields.
	problems, err := h.checkDestination(c, y, &subject)
	if err != nil {
		return err
	}
	shape, more, err := h.Sources.Shape(c.Ctx, c.Who.WorkspaceID, y.Config.SourceAttributes)
	if err != nil {
		return err
	}
	problems = append(append(problems, folded...), more...)
	subject.Columns, subject.ColumnsKnown = shape.Columns, shape.ColumnsKnown
	subject.Streaming, subject.StreamingDatabase = shape.Streaming, shape.StreamingDatabase
	if shape.Source != nil {
		y.SourceID = shape.Source.ID
		y.DatasetID = shape.DatasetID
		y.TopicID = shape.TopicID
		if y.SegmentID = nil; shape.Segment != nil {
			y.SegmentID = &shape.Segment.ID
		}
		y.Config.SourceAttributes.Object = shape.Object
	}
	problems = append(problems, mapping.Check(subject)...)
	problems = append(problems, h.Gate.CheckSettings(subject.DestinationType, &y.Config)...)
	// Defaults are filled into a valid configuration only: half of an invalid
	// one would be guessed.
	if len(problems) == 0 {
		mapping.Normalize(&y.Config)
	}
	if more, err = h.checkSequence(c, y); err != nil {
		return err
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return problem.Invalid(problems)
	}
	before.Accept(y)
	sources.GenerateMappings(y, subject.Object, &shape)
	return nil
}

// checkDestination finds the connection and the object that the sync writes to.
func (h *Handlers) checkDestination(c *call.Call, y *store.Sync, subject *mapping.Subject) ([]api.Problem, error) {
	at := y.Config.DestinationAttributes
	d, err := view(c, func(c *call.Call, tx *store.Tx) (*store.Destination, error) {
		return store.Destinations.Read(tx, c.Who.WorkspaceID, at.ConnectionID)
	})
	if errors.Is(err, store.ErrNotFound) {
		return []api.Problem{{Field: "destination_attributes.connection_id", Message: "there is no such destination in the workspace"}}, nil
	}
	if err != nil {
		return nil, err
	}
	y.DestinationID, subject.DestinationType = d.ID, d.Type
	subject.UpdatesPart = h.Shared.Dialect.UpdateNeedsIdentifier
	// From the cache where it can be: a check should not wait for a
	// destination.
	objects, err := h.Destinations.Objects(c.Ctx, d)
	var f *problem.Failure
	if errors.As(err, &f) && f.Code == http.StatusBadGateway {
		return []api.Problem{{Field: "destination_attributes.connection_id", Message: f.Message}}, nil
	}
	if errors.Is(err, store.ErrNotFound) { // it was there a moment ago
		return nil, fmt.Errorf("check sync: %w", store.ErrGone)
	}
	if err != nil {
		return nil, err
	}
	find := func(name string) *api.DestinationObject {
		at := slices.IndexFunc(objects, func(o *api.DestinationObject) bool { return o.FullName == name })
		if at < 0 {
			return nil
		}
		return objects[at]
	}
	subject.Object, subject.Lookups = find(at.Object), find
	if subject.Object == nil {
		return []api.Problem{{Field: "destination_attributes.object", Message: "the destination has no such object; its objects are under /destinations/{id}/objects"}}, nil
	}
	return nil, nil
}

// checkSequence checks the parent of a sync that runs after another one: it is
// in the workspace, and not the sync itself, directly or around a circle.
func (h *Handlers) checkSequence(c *call.Call, y *store.Sync) ([]api.Problem, error) {
	parent := runs.SequenceParent(&y.Config)
	if parent == 0 {
		return nil, nil
	}
	problem := func(message string) []api.Problem {
		return []api.Problem{{Field: "mode.triggers.sync_sequence.sync_id", Message: message}}
	}
	seen := map[int64]bool{y.ID: y.ID != 0}
	for at := parent; at != 0; {
		if seen[at] {
			return problem("makes a circle of syncs that wait for each other"), nil
		}
		seen[at] = true
		before, err := view(c, func(c *call.Call, tx *store.Tx) (*store.Sync, error) {
			return store.Syncs.Read(tx, c.Who.WorkspaceID, at)
		})
		if errors.Is(err, store.ErrNotFound) {
			// Further up a sync was deleted, and the chain ends there.
			if at == parent {
				return problem("there is no such sync in the workspace"), nil
			}
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		at = runs.SequenceParent(&before.Config)
	}
	return nil, nil
}
