// Package rest answers the operations of the API, a file for each resource, and the other
// pages at the service's address: connect links, where things are, and readiness. The work
// of a run is left to runs, and the meaning of columns to columns.
package rest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Parts are what the resources of the API need of the service.
type Parts struct {
	Shared       *call.Shared
	Log          *slog.Logger
	Clock        *clock.Clock
	Lock         *statelock.Lock
	Work         *background.Work
	Sources      *sources.Sources
	Destinations *destinations.Destinations
	Gate         *destination.Gate
	Schedule     *runs.Schedule
	Runs         *runs.Engine
	Ledger       func() *ledger.Ledger // opened after the parts were assembled
	Mail         *lifecycle.Mailer
	Random       io.Reader // makes the secrets of webhooks
	Ends         ends
	// Perform runs an operation of the API for a caller, and gives its reply as JSON.
	Perform func(ctx context.Context, who call.Principal, id string, path map[string]int64, body any) (json.RawMessage, error)
}

// ends ends what is done for syncs.
type ends interface {
	// Forget drops what a deleted sync leaves behind.
	Forget(id int64) error
}

// Handlers answer the operations of the API, one file for each resource.
type Handlers struct {
	Parts
	replies *rendered
}

// New assembles them.
func New(p Parts) *Handlers { return &Handlers{Parts: p, replies: newRendered()} }

// Operations are the handlers by the ids that the OpenAPI document gives them.
func (h *Handlers) Operations() map[string]call.Handler {
	all := map[string]call.Handler{
		"listSourceTypes":           h.listSourceTypes,
		"listSources":               list(callersWorkspace, store.Sources.List, h.sourceOf),
		"createSource":              h.createSource,
		"fetchSource":               fetch(ownSource, h.sourceOf),
		"updateSource":              h.updateSource,
		"deleteSource":              h.deleteSource,
		"listSourceObjects":         h.listSourceObjects,
		"refreshSourceTables":       h.refreshSourceTables,
		"fetchRefreshTablesStatus":  h.fetchRefreshTablesStatus,
		"fetchSourceTable":          fetch(tableOfPath, tableOf),
		"refreshTableColumns":       h.refreshTable(ownTable),
		"fetchRefreshColumnsStatus": h.fetchRefreshColumnsStatus,
		"fetchTableColumns":         h.fetchTableColumns,
		"refreshNamedTable":         h.refreshTable(namedTable),
		"fetchNamedTableRefresh":    h.fetchNamedTableRefresh,
		"refreshModelColumns":       h.refreshDataset(datasetOfModel),
		"fetchModelRefresh":         h.fetchDatasetRefresh(datasetOfModel),
		"refreshDatasetColumns":     h.refreshDataset(ownDataset),
		"fetchDatasetRefresh":       h.fetchDatasetRefresh(ownDataset),
		"listDestinations":          h.listDestinations,
		"createDestination":         h.createDestination,
		"fetchDestination":          h.fetchDestination,
		"updateDestination":         h.updateDestination,
		"deleteDestination":         h.deleteDestination,
		"listDestinationObjects":    h.listDestinationObjects,
		"fetchDestinationObject":    h.fetchDestinationObject,
		"refreshDestinationObjects": h.refreshDestinationObjects,
		"fetchRefreshObjectsStatus": h.fetchRefreshObjectsStatus,
		"listConnectors":            h.listConnectors,
		"listModels":                list(sourceOfPath, store.Models.List, modelOf),
		"createModel":               taking(h.createModel),
		"fetchModel":                fetch(ownModel, modelOf),
		"updateModel":               taking(h.updateModel),
		"deleteModel":               remove(sourceOfPath, "model_id", store.Models.Delete),
		"listFilterSegments":        list(sourceOfPath, store.Segments.List, segmentOf),
		"createFilterSegment":       taking(h.createFilterSegment),
		"fetchFilterSegment":        fetch(ownSegment, segmentOf),
		"updateFilterSegment":       taking(h.updateFilterSegment),
		"deleteFilterSegment":       remove(sourceOfPath, "segment_id", store.Segments.Delete),
		"listTopics":                list(sourceOfPath, store.Topics.List, topicOf),
		"createTopic":               taking(h.createTopic),
		"fetchTopic":                fetch(ownTopic, topicOf),
		"updateTopic":               update(ownTopic, topicBody.apply, store.Topics.Save, topicOf),
		"deleteTopic":               remove(sourceOfPath, "topic_id", deleteTopic),
		"listDatasets":              h.listDatasets,
		"createDataset":             taking(h.createDataset),
		"fetchDataset":              fetch(ownDataset, datasetOf),
		"updateDataset":             taking(h.updateDataset),
		"deleteDataset":             remove(callersWorkspace, "dataset_id", store.Datasets.Delete),
		"fetchOwnWorkspace":         h.fetchOwnWorkspace,
		"listWebhooks":              list(callersWorkspace, store.Webhooks.List, webhookOf),
		"createWebhook":             taking(h.createWebhook),
		"fetchWebhook":              fetch(ownWebhook, webhookOf),
		"updateWebhook":             update(ownWebhook, webhookBody.apply, store.Webhooks.Save, webhookOf),
		"deleteWebhook":             remove(callersWorkspace, "webhook_id", store.Webhooks.Delete),
		"listInvitations":           list(callersOrganization, store.Invitations.List, organizations.InvitationOf),
		"createInvitation":          admins(taking(h.createInvitation)),
		"fetchInvitation":           fetch(ownInvitation, organizations.InvitationOf),
		"updateInvitation":          admins(update(ownInvitation, invitationBody.apply, store.Invitations.Save, organizations.InvitationOf)),
		"deleteInvitation":          admins(remove(callersOrganization, "invitation_id", store.Invitations.Delete)),
		"listWorkspaces":            list(callersOrganization, store.Workspaces.List, workspaceOf),
		"createWorkspace":           admins(taking(h.createWorkspace)),
		"fetchWorkspace":            fetch(ownWorkspace, workspaceOf),
		"updateWorkspace":           update(ownedWorkspace, workspaceBody.apply, store.Workspaces.Save, workspaceOf),
		"deleteWorkspace":           admins(remove(callersOrganization, "workspace_id", store.Workspaces.Delete)),
		"fetchWorkspaceKey":         h.fetchWorkspaceKey,
		"listWorkspaceUsers":        list(workspaceOfPath, (*store.Tx).Members, memberOf),
		"listWorkspaceInvitations":  list(workspaceOfPath, store.WorkspaceInvitations.List, organizations.WorkspaceInvitationOf),
		"createWorkspaceInvitation": taking(h.createWorkspaceInvitation),
		"fetchWorkspaceInvitation":  fetch(one(workspaceOfPath, "invitation_id", store.WorkspaceInvitations.Read), organizations.WorkspaceInvitationOf),
		"updateWorkspaceInvitation": update(one(inviting, "invitation_id", store.WorkspaceInvitations.Read), workspaceInvitationBody.apply,
			store.WorkspaceInvitations.Save, organizations.WorkspaceInvitationOf),
		"deleteWorkspaceInvitation": remove(inviting, "invitation_id", store.WorkspaceInvitations.Delete),
		"listUsers":                 list(callersOrganization, store.Users.List, userOf),
		"listSyncs":                 h.listSyncs,
		"createSync":                h.createSync,
		"fetchSync":                 h.fetchSync,
		"updateSync":                h.updateSync,
		"deleteSync":                h.deleteSync,
		"triggerSync":               h.triggerSync,
		"listSyncRuns":              list(syncOfPath, store.SyncRuns.List, h.Runs.Shown),
		"fetchSyncRun":              fetch(ownRun, h.Runs.Shown),
		"cancelSyncRun":             h.cancelSyncRun,
		"fetchSyncRunRecords":       h.fetchSyncRunRecords,
	}
	maps.Copy(all, h.linkOperations())
	return all
}

// ForgetReplies drops the replies that are kept: a restored world has other rows under
// the ids.
func (h *Handlers) ForgetReplies() { h.replies.forget() }
