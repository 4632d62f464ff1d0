// Package rest answers the operations of the API, a file for each resource, and what stands
// beside them at the service's address: the pages of connect links, where things are, and
// whether the process is ready. What a run does is left to runs, and what columns mean to
// columns.
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
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
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
		"listSources":               h.listSources,
		"createSource":              h.createSource,
		"fetchSource":               h.fetchSource,
		"updateSource":              h.updateSource,
		"deleteSource":              h.deleteSource,
		"listSourceObjects":         h.listSourceObjects,
		"refreshSourceTables":       h.refreshSourceTables,
		"fetchRefreshTablesStatus":  h.fetchRefreshTablesStatus,
		"fetchSourceTable":          h.fetchSourceTable,
		"refreshTableColumns":       h.refreshTableColumns,
		"fetchRefreshColumnsStatus": h.fetchRefreshColumnsStatus,
		"fetchTableColumns":         h.fetchTableColumns,
		"refreshNamedTable":         h.refreshNamedTable,
		"fetchNamedTableRefresh":    h.fetchNamedTableRefresh,
		"refreshModelColumns":       h.refreshDataset(datasetOfModel),
		"fetchModelRefresh":         h.fetchDatasetRefresh(datasetOfModel),
		"refreshDatasetColumns":     h.refreshDataset(datasetOfPath),
		"fetchDatasetRefresh":       h.fetchDatasetRefresh(datasetOfPath),
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
		"listModels":                h.listModels,
		"createModel":               h.createModel,
		"fetchModel":                h.fetchModel,
		"updateModel":               h.updateModel,
		"deleteModel":               h.deleteModel,
		"listFilterSegments":        h.listFilterSegments,
		"createFilterSegment":       h.createFilterSegment,
		"fetchFilterSegment":        h.fetchFilterSegment,
		"updateFilterSegment":       h.updateFilterSegment,
		"deleteFilterSegment":       h.deleteFilterSegment,
		"listTopics":                h.listTopics,
		"createTopic":               h.createTopic,
		"fetchTopic":                h.fetchTopic,
		"updateTopic":               h.updateTopic,
		"deleteTopic":               h.deleteTopic,
		"listDatasets":              h.listDatasets,
		"createDataset":             h.createDataset,
		"fetchDataset":              h.fetchDataset,
		"updateDataset":             h.updateDataset,
		"deleteDataset":             h.deleteDataset,
		"fetchOwnWorkspace":         h.fetchOwnWorkspace,
		"listWebhooks":              h.listWebhooks,
		"createWebhook":             h.createWebhook,
		"fetchWebhook":              h.fetchWebhook,
		"updateWebhook":             h.updateWebhook,
		"deleteWebhook":             h.deleteWebhook,
		"listInvitations":           h.listInvitations,
		"createInvitation":          h.createInvitation,
		"fetchInvitation":           h.fetchInvitation,
		"updateInvitation":          h.updateInvitation,
		"deleteInvitation":          h.deleteInvitation,
		"listWorkspaces":            h.listWorkspaces,
		"createWorkspace":           h.createWorkspace,
		"fetchWorkspace":            h.fetchWorkspace,
		"updateWorkspace":           h.updateWorkspace,
		"deleteWorkspace":           h.deleteWorkspace,
		"fetchWorkspaceKey":         h.fetchWorkspaceKey,
		"listWorkspaceUsers":        h.listWorkspaceUsers,
		"listWorkspaceInvitations":  h.listWorkspaceInvitations,
		"createWorkspaceInvitation": h.createWorkspaceInvitation,
		"fetchWorkspaceInvitation":  h.fetchWorkspaceInvitation,
		"updateWorkspaceInvitation": h.updateWorkspaceInvitation,
		"deleteWorkspaceInvitation": h.deleteWorkspaceInvitation,
		"listUsers":                 h.listUsers,
		"listSyncs":                 h.listSyncs,
		"createSync":                h.createSync,
		"fetchSync":                 h.fetchSync,
		"updateSync":                h.updateSync,
		"deleteSync":                h.deleteSync,
		"triggerSync":               h.triggerSync,
		"listSyncRuns":              h.listSyncRuns,
		"fetchSyncRun":              h.fetchSyncRun,
		"cancelSyncRun":             h.cancelSyncRun,
		"fetchSyncRunRecords":       h.fetchSyncRunRecords,
	}
	maps.Copy(all, h.linkOperations())
	return all
}

// ForgetReplies drops the replies that are kept: a restored world has other rows under
// the ids.
func (h *Handlers) ForgetReplies() { h.replies.forget() }
