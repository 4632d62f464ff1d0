package store

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// testClock moves on a second with each look, so that orders are certain.
func testClock() func() time.Time {
	var looks atomic.Int64
	start := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	return func() time.Time { return start.Add(time.Duration(looks.Add(1)) * time.Second) }
}

// The names of files in a data directory.
const (
	databaseFile = "destkit.db"
	sumEnd       = "-sum"
	lockFile     = "owner.lock"
	ownerFile    = "owner"
	leftover     = ".unfinished"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir != "" && o.MasterKey == nil {
		o.MasterKey = testKey
	}
	if o.Clock == nil {
		o.Clock = testClock()
	}
	s, err := Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// The kinds of stores that there are.
const (
	inMem  = "memory"
	onDisk = "disk"
)

// a gives options a separate place.
func (o Options) a(t testing.TB, kind string) Options {
	t.Helper()
	if kind == onDisk {
		o.Dir = filepath.Join(t.TempDir(), "data")
	}
	return o
}

// eachKind runs a test with a store of each kind.
func eachKind(t *testing.T, test func(*testing.T, *Store)) {
	for _, kind := range []string{inMem, onDisk} {
		t.Run(kind, func(t *testing.T) { test(t, open(t, Options{}.a(t, kind))) })
	}
}

func update(t testing.TB, s *Store, change func(*Tx)) {
	t.Helper()
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error { change(tx); return nil }))
}

func view(t testing.TB, s *Store, read func(*Tx)) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(tx *Tx) error { read(tx); return nil }))
}

// world is one organization with one of everything in it.
type world struct {
	Organization *Organization
	User         *User
	Workspace    *Workspace
	Destination  *Destination
	Source       *Source
	Dataset      *Dataset
	ModelDataset *Dataset
	Model        *Model
	Topic        *Topic
	Sync         *Sync
	Run          *SyncRun
	Webhook      *Webhook
	Invitation   *Invitation
	Invited      *WorkspaceInvitation
	Refresh      *Refresh
	Mail         *Mail
	Segment      *Segment
	Link         *Link
	Token, Key   string
}

// The secrets that a world gives to its store.
const (
	secretToken    = "SECRET-auth-token-5f3a"
	secretPassword = "SECRET-password-9b1c"
	secretEndpoint = "SECRET-path-77aa"
	secretSigning  = "SECRET-signing-e1e1"
)

func credentials(pairs ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = api.Raw(pairs[i+1])
	}
	return m
}

// build makes a world; all of it is initial.
func build(t testing.TB, tx *Tx, name string) *world {
	t.Helper()
	w := &world{Organization: &Organization{Name: name}}
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	must(tx.CreateOrganization(w.Organization))
	w.User = &User{OrganizationID: w.Organization.ID, Email: "Ada@" + name + ".example", Role: api.RoleAdmin, Notifications: true, Initial: true}
	must(Users.Create(tx, w.User))
	w.Workspace = &Workspace{OrganizationID: w.Organization.ID, Name: "Main", NotificationEmails: []string{"ops@" + name + ".example"}, Initial: true}
	must(Workspaces.Create(tx, w.Workspace))
	must(Memberships.Create(tx, &Membership{WorkspaceID: w.Workspace.ID, UserID: w.User.ID, Role: api.RoleOwner, Initial: true}))
	var err error
	w.Token, err = tx.NewAccessToken(w.User.ID, "first")
	must(err)
	w.Key, err = tx.NewWorkspaceKey(w.Workspace.ID)
	must(err)
	buildConnections(t, tx, w)
	buildSyncs(t, tx, w)
	return w
}

// built makes a world with the name acme in one transaction.
func built(t testing.TB, s *Store) *world { return builtAs(t, s, "acme") }

func builtAs(t testing.TB, s *Store, name string) (w *world) {
	t.Helper()
	update(t, s, func(tx *Tx) { w = build(t, tx, name) })
	return w
}

func buildConnections(t testing.TB, tx *Tx, w *world) {
	t.Helper()
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	ws := w.Workspace.ID
	w.Destination = &Destination{
		WorkspaceID: ws, Name: "Naïve ☃", Type: api.TypeCustomAPI,
		TestResults:   &api.TestResults{Steps: []api.TestStep{{Step: "DNS", Status: api.StepFailed, Error: &api.StepError{Message: "no such host"}}}},
		TestSucceeded: api.Ptr(false), TestedAt: time.UnixMilli(1_700_000_000_123).UTC(),
	}
	must(tx.CreateDestination(w.Destination, credentials("auth_token", secretToken)))
	w.Source = &Source{WorkspaceID: ws, Name: "warehouse", Type: "postgres", Engine: api.EngineBasic,
		Details: map[string]any{"host": "db.example"}, WritebackRetention: api.Ptr(int64(14))}
	must(tx.CreateSource(w.Source, credentials("password", secretPassword)))
	must(tx.PutSourceTables(w.Source.ID, []api.Table{
		{TableCatalog: "main", TableSchema: "main", TableName: "users", Columns: []api.Column{{Name: "id", Type: "bigint", Kind: api.KindInteger}}},
		{TableCatalog: "main", TableSchema: "main", TableName: "orders"},
	}))
	w.Dataset = &Dataset{WorkspaceID: ws, SourceID: w.Source.ID, Name: "Active", Description: api.Ptr(""), Query: "select 1",
		Slug: "active", Columns: []api.Column{{Name: "n", Type: "numeric(9,2)", Kind: api.KindDecimal}}}
	must(Datasets.Create(tx, w.Dataset))
	w.Segment = &Segment{SourceID: w.Source.ID, DatasetID: w.Dataset.ID, Name: "Best ☃", Description: api.Ptr("d"), Query: "n > 1", CachedRecordCount: api.Ptr(int64(7))}
	must(Segments.Create(tx, w.Segment))
	w.ModelDataset = &Dataset{WorkspaceID: ws, SourceID: w.Source.ID, Name: "Old", Query: "select 2", Slug: "old"}
	must(Datasets.Create(tx, w.ModelDataset))
	w.Model = &Model{SourceID: w.Source.ID, DatasetID: w.ModelDataset.ID, SourceObjectID: 77, Name: "Old", Query: "select 2",
		CompiledQuery: api.Ptr("select 2"), Columns: []api.Column{}}
	must(Models.Create(tx, w.Model))
	w.Topic = &Topic{SourceID: w.Source.ID, Name: "events", SampleMessage: json.RawMessage(`{"n": 12345678901234567890, "s":"x"}`),
		Schema: map[string]string{"n": "number", "s": "string"}}
	must(Topics.Create(tx, w.Topic))
}

func buildSyncs(t testing.TB, tx *Tx, w *world) {
	t.Helper()
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	ws := w.Workspace.ID
	w.Sync = &Sync{WorkspaceID: ws, DestinationID: w.Destination.ID, SourceID: w.Source.ID, DatasetID: &w.Dataset.ID, TopicID: &w.Topic.ID, SegmentID: &w.Segment.ID,
		Status: api.SyncReady, NextAlertID: 3, MatchRate: &api.MatchRate{MatchRate: 0.5, LastCalculatedAt: api.Time{Time: time.UnixMilli(5).UTC()}},
		Config: api.SyncConfig{Label: api.Ptr("L"), Operation: api.OperationUpsert,
			Mappings:              []api.Mapping{{From: api.MappingFrom{Type: api.FromColumn, Data: json.RawMessage(`"id"`)}, To: "Id", IsPrimaryIdentifier: true}},
			AlertAttributes:       []api.Alert{},
			AdvancedConfiguration: map[string]json.RawMessage{"big": json.RawMessage("12345678901234567890.10")}}}
	must(Syncs.Create(tx, w.Sync))
	w.Run = &SyncRun{WorkspaceID: ws, SyncID: w.Sync.ID, Run: api.SyncRun{Status: api.RunQueued, SourceRecordCount: api.Ptr(int64(1 << 60))}}
	must(SyncRuns.Create(tx, w.Run))
	w.Webhook = &Webhook{WorkspaceID: ws, Name: "hook", Events: []string{"sync.failed"}, Endpoint: "https://hooks.example:8443/" + secretEndpoint + "?k=" + secretEndpoint}
	must(tx.CreateWebhook(w.Webhook, secretSigning))
	w.Invitation = &Invitation{OrganizationID: w.Organization.ID, Email: "bob@x.example", Role: api.RoleMember, CreatedByID: w.User.ID,
		Workspaces: []*WorkspaceInvitation{{WorkspaceID: ws, Role: api.RoleEditor}}}
	must(tx.CreateInvitation(w.Invitation))
	w.Invited = &WorkspaceInvitation{WorkspaceID: ws, Email: "eve@x.example", Role: api.RoleViewer, CreatedByID: w.User.ID}
	must(WorkspaceInvitations.Create(tx, w.Invited))
	w.Refresh = &Refresh{WorkspaceID: ws, Kind: RefreshObjects, TargetID: w.Destination.ID}
	must(Refreshes.Create(tx, w.Refresh))
	w.Mail = &Mail{OrganizationID: w.Organization.ID, WorkspaceID: &ws, To: []string{"a@x.example"}, From: "noreply@x.example", Subject: "S", Text: "T", Kind: "alert"}
	must(Mails.Create(tx, w.Mail))
	w.Link = &Link{WorkspaceID: ws, Kind: "source", Type: "postgres", TargetID: &w.Source.ID, RedirectURI: "https://app.example/back", ExpiresAt: time.UnixMilli(9).UTC()}
	must(tx.CreateLink(w.Link))
}

// contentOf is what a file holds.
func contentOf(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}
