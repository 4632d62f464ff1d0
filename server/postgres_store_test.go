package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

// TestMatrixOnPostgres is a part of the other tests over again, with the store in
// PostgreSQL: what the API shows, runs of syncs, whole worlds, secrets.
func TestMatrixOnPostgres(t *testing.T) {
	matrixtest.Long(t)
	testkit.StartPostgres(t) // it goes on after the first test, some of which look for what goes on
	for name, test := range map[string]func(*testing.T){
		"contract":       TestContract,
		"lists":          TestLists,
		"organizations":  TestOrganizationsAreApart,
		"reset":          TestResetOfOneOrganization,
		"roles":          TestRoles,
		"claim":          TestClaim,
		"names":          TestDatasetNames,
		"concurrent":     TestConcurrentUpdates,
		"a run":          TestSyncReallyRuns,
		"mirror":         TestMirrorRun,
		"cancel":         TestCancelAtEachStep,
		"schedules":      TestSchedulesOnTheClock,
		"alerts":         TestAlertsOfRealRuns,
		"mailbox":        TestMailbox,
		"topic messages": TestTopicMessages,
		"deliveries":     TestDeliveryRetries,
		"explain":        TestExplainARecordsWay,
		"audit":          TestMatrixAuditOfEachOperation,
		"seed":           TestSeedIsAllOrNothing,
		"restore":        TestRestoreBringsTheWorldBack,
		"fork":           TestFork,
		"figures":        TestFigures,
		"secrets":        TestNoSecretAnywhere,
		"held runs":      TestRestoreDuringARun,
		"retries":        TestAFailedRunIsTriedAgain,
		"live":           TestLivePause,
		"on their way":   TestRecordsOnTheirWay,
		"without answer": TestRecordsWithoutAnswer,
	} {
		t.Run(name, test)
	}
}

// onPostgres puts the store of a test of TestMatrixOnPostgres into a schema of its own.
func onPostgres(t testing.TB, config *Config) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestMatrixOnPostgres/") {
		return
	}
	config.Store = postgresURL(testkit.StartPostgres(t))
	config.MasterKey = make([]byte, masterKeySize)
}

var schemas atomic.Int64

func postgresURL(server testkit.Postgres) string {
	return fmt.Sprintf("postgres://%s:%s@/postgres?host=%s&port=%d&search_path=test_%d",
		testkit.PostgresUser, testkit.PostgresPassword, server.Folder, server.Port, schemas.Add(1))
}

// A database that is away answers 503 and nothing is half written; when it is
// back, so is the service, without a restart.
func TestPostgresIsAway(t *testing.T) {
	server := testkit.StartPostgres(t)
	admin, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://%s:%s@/postgres?host=%s&port=%d", testkit.PostgresUser, testkit.PostgresPassword, server.Folder, server.Port))
	require.NoError(t, err)
	defer admin.Close(t.Context())
	command := func(text string) {
		t.Helper()
		_, err := admin.Exec(t.Context(), text)
		require.NoError(t, err)
	}
	command("CREATE DATABASE away")
	url := strings.Replace(postgresURL(server), "@/postgres", "@/away", 1)
	w := newWorld(t, func(c *Config) { c.Store, c.MasterKey = url, make([]byte, masterKeySize) })
	create := func() *answer { return w.do("POST", "/destinations", w.key, customDestination(w.destination())) }
	create().want(http.StatusCreated)
	before := string(w.do("GET", "/destinations", w.key, nil).want(http.StatusOK).text)
	// In this order: who listens connects again at once.
	command("ALTER DATABASE away ALLOW_CONNECTIONS false")
	command(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'away'`)
	for _, a := range []*answer{create(), w.do("GET", "/destinations", w.key, nil)} {
		a.want(http.StatusServiceUnavailable)
		require.NotContains(t, string(a.text), testkit.PostgresPassword)
	}
	answer := httptest.NewRecorder()
	w.s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Contains(t, answer.Body.String(), "database is not available")
	require.NotContains(t, answer.Body.String(), testkit.PostgresUser, "everybody may ask")
	command("ALTER DATABASE away ALLOW_CONNECTIONS true")
	require.Equal(t, before, string(w.do("GET", "/destinations", w.key, nil).want(http.StatusOK).text))
	create().want(http.StatusCreated)
	require.EqualValues(t, 2, w.do("GET", "/destinations", w.key, nil).want(http.StatusOK).id("pagination.total_records"))
}

// The clock of the database is that of every process.
func TestClocksThatDiffer(t *testing.T) {
	w := newWorld(t)
	require.Less(t, time.Until(w.s.clock.Now()).Abs(), time.Minute)
	w.s.ahead.Store(int64(time.Hour))
	require.InDelta(t, time.Hour, time.Until(w.s.clock.Now()), float64(time.Minute))
}
