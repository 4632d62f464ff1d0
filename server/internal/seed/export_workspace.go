package seed

import (
	"fmt"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

func (x *exporter) workspace(w *store.Workspace) (pairs, error) {
	who := call.Principal{Workspace: w, OrganizationID: w.OrganizationID, WorkspaceID: w.ID}
	entry := pairs{{"name", w.Name}, {"notification_emails", anything(w.NotificationEmails)}}
	names := seedNames{sources: map[int64]string{}, destinations: map[int64]string{}, syncs: map[int64]string{}, objects: map[string]string{}, ofModels: map[int64]bool{}, tables: map[string]int{}}
	sources, err := x.connections(who, "listSources", "listSourceTypes", names.sources, (*store.Tx).SourceCredentials)
	if err != nil {
		return nil, err
	}
	destinations, err := x.connections(who, "listDestinations", "listConnectors", names.destinations, (*store.Tx).DestinationCredentials)
	if err != nil {
		return nil, err
	}
	err = x.s.Shared.Store.View(x.ctx, func(tx *store.Tx) error {
		if err := x.objects(tx, sources, names); err != nil {
			return err
		}
		rows, err := store.Datasets.All(tx, w.ID)
		if err != nil {
			return err
		}
		var datasets, syncs, hooks []any
		for _, d := range rows {
			names.objects[fmt.Sprint(api.ObjectDataset, d.ID)] = d.Name
			if names.ofModels[d.ID] {
				continue
			}
			datasets = append(datasets, pairs{{"name", d.Name}, {"source", names.sources[d.SourceID]}, {"query", d.Query}, {"description", api.Value(d.Description)}})
		}
		all, err := store.Syncs.All(tx, w.ID)
		if err != nil {
			return err
		}
		for _, y := range all {
			syncs = append(syncs, names.sync(y))
		}
		webhooks, err := store.Webhooks.All(tx, w.ID)
		for _, h := range webhooks {
			hooks = append(hooks, pairs{{"name", h.Name}, {"endpoint", replaceURL}, {"events", anything(h.Events)}})
		}
		var sourceEntries, destinationEntries []any
		for _, one := range sources {
			sourceEntries = append(sourceEntries, one.entry)
		}
		for _, one := range destinations {
			destinationEntries = append(destinationEntries, one.entry)
		}
		entry = append(entry, pair{"sources", sourceEntries}, pair{"datasets", datasets}, pair{"destinations", destinationEntries}, pair{"syncs", syncs}, pair{"webhooks", hooks})
		return err
	})
	return entry, err
}
