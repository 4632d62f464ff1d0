// Package rest owns the resources of the API that runs only read: workspaces and people,
// webhooks, sources with their tables, destinations with their objects, datasets, models, segments and topics. One file
// holds one resource.
package rest

import (
	"io"
	"log/slog"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/settings"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Parts are what the resources of the API need of the service.
type Parts struct {
	Shared       *call.Shared
	Log          *slog.Logger
	Clock        *clock.Clock
	Work         *background.Work
	Sources      *sources.Sources
	Destinations *destinations.Destinations
	Gate         *destination.Gate
	Mail         *lifecycle.Mailer
	Random       io.Reader // makes the secrets of webhooks
	Process      string    // of several that share an installation
}

// Handlers answer the operations of the API, one file for each resource.
type Handlers struct {
	shared       *call.Shared
	log          *slog.Logger
	clock        *clock.Clock
	work         *background.Work
	sources      *sources.Sources
	destinations *destinations.Destinations
	gate         *destination.Gate
	mail         *lifecycle.Mailer
	random       io.Reader
	process      string
	settings     *settings.Settings // nil: this process is alone
}

// New assembles them.
func New(p Parts) *Handlers {
	return &Handlers{
		shared: p.Shared, log: p.Log, clock: p.Clock, work: p.Work, sources: p.Sources, destinations: p.Destinations, gate: p.Gate, mail: p.Mail,
		random: p.Random, process: p.Process,
	}
}

// Share tells which processes of the installation are alive.
func (h *Handlers) Share(k *settings.Settings) { h.settings = k }

// Operations are the handlers by the ids that the OpenAPI document gives them.
func (h *Handlers) Operations() map[string]call.Handler {
	return map[string]call.Handler{
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
	}
}
