// Package violation breaks the rules of the service on purpose, one each, so that the
// judge of services can be judged: requests and replies of the API, calls to
// destinations, certificates, e-mails and runs pass here where a rule is to be broken.
// What a violation needs of the service is handed to it.
package violation

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/violation/exchange"
)

// Violation describes one way in which the service can break one rule on
// purpose, so that a judge of services can be judged. ID is the id of the check
// that must notice it ("TOK-001"), with a suffix for the second and further ways
// ("TOK-001.2").
type Violation struct {
	ID string `json:"id"`
	// Changes says in one sentence what differs from the clean service.
	Changes string `json:"changes"`
	// Also lists the other checks that the same behaviour trips.
	Also []Also `json:"also"`
}

// Also is one more check that a violation trips, and why.
type Also struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// A violation is exactly one changed behaviour, put into the narrowest place
// where its check looks. arm is called once for every service that is configured
// with it; what it has to remember are variables of arm, guarded by a lock or
// atomics. It decides by what the protocol says (operation, field, method, count
// of calls), never by a name, user agent or order of a judge.
//
// Nil seams do not exist: a service without violations runs as if they had never
// been written. Where seams are too coarse, Config of the part that is concerned
// gets a field of executor.Deviations or the like.
type violation struct {
	Violation
	arm func(s *Service) seams
}

type seams struct {
	// ask sees a request of the API before the service does, and may rewrite it.
	ask func(*exchange.Request)
	// tell sees the answer, and may rewrite it.
	tell func(*exchange.Answer)
	// carry stands for the way of one call to a destination. Batches, planning calls
	// and connection tests pass here.
	carry exchange.Carry
	// tls changes how certificates of destinations are looked at.
	tls func(*tls.Config)
	// mail sees every e-mail, and may change it; false drops it.
	mail func(*store.Mail) bool
	// engine changes how runs work.
	engine func(*executor.Deviations)
}

// Service is what a violation knows of the service that it is in.
type Service struct {
	API   http.Handler // without violations
	View  func(ctx context.Context, read func(*store.Tx) error) error
	Now   func() time.Time // of the service's clock
	Key   func() string    // opens the first workspace
	Token func() string    // opens the first organization
	// Settings are those that the service begins with.
	Settings Settings
}

// Settings are what a violation may set before the service begins.
type Settings struct {
	CacheTTL          *time.Duration
	AllowPlainHTTP    *bool
	PartialSyncUpdate *bool
}

// violations are all there are, by area.
func violations() []violation {
	return slices.Concat(
		tokenViolations(), requestViolations(),
		listsViolations(),
		failuresViolations(),
		versionsViolations(),
		organizationViolations(),
		destinationsViolations(), secretsViolations(),
		objectsViolations(),
		sourcesViolations(),
		modelsViolations(),
		topicsViolations(),
		syncsViolations(),
		mappingsViolations(),
		modesViolations(),
		syncRunsViolations(),
		trustViolations(),
		planningViolations(),
		repliesViolations(),
		paceViolations(),
		throttlingViolations(),
		timeoutsViolations(),
		retriesViolations(),
		operationsViolations(),
		arrivalsViolations(),
		countersViolations(),
		alertsViolations(),
		lifeViolations(),
	)
}

// All are the violations that there are.
func All() []Violation {
	var out []Violation
	for _, v := range violations() {
		if v.Also == nil {
			v.Also = []Also{}
		}
		out = append(out, v.Violation)
	}
	return out
}

// breaks is a violation with a single seam set.
func breaks(id, changes string, s seams, also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(*Service) seams { return s }}
}

// Broken are the rules that a service breaks; nil where it breaks none.
type Broken []seams

// Check reports whether there is a violation of each id; the error names the nearest
// one.
func Check(ids []string) error {
	_, err := find(ids)
	return err
}

func find(ids []string) ([]violation, error) {
	all := violations()
	var found []violation
	for _, id := range ids {
		i := slices.IndexFunc(all, func(v violation) bool { return v.ID == id })
		if i >= 0 {
			found = append(found, all[i])
			continue
		}
		var known []string
		for _, v := range all {
			known = append(known, v.ID)
		}
		if near := suggest.Word(id, known); near != "" {
			return nil, fmt.Errorf("there is no violation %q, did you mean %s?", id, near)
		}
		return nil, fmt.Errorf("there is no violation %q", id)
	}
	return found, nil
}

// Break makes the violations with these ids work in a service.
func Break(ids []string, in *Service) (Broken, error) {
	chosen, err := find(ids)
	if err != nil {
		return nil, err
	}
	var b Broken
	for _, v := range chosen {
		b = append(b, v.arm(in))
	}
	return b, nil
}

// Deviations are those of the engine's violations.
func (b Broken) Deviations() executor.Deviations {
	var d executor.Deviations
	for _, s := range b {
		if s.engine != nil {
			s.engine(&d)
		}
	}
	return d
}

// TLS is nil where no violation looks at certificates.
func (b Broken) TLS() func(*tls.Config) {
	for _, s := range b {
		if s.tls != nil {
			return s.tls
		}
	}
	return nil
}

// Carriers is the way of calls to destinations with their violations; nil
// without any.
func (b Broken) Carriers(dial exchange.DialFunc) func(http.RoundTripper) http.RoundTripper {
	var carries []exchange.Carry
	for _, s := range b {
		if s.carry != nil {
			carries = append(carries, s.carry)
		}
	}
	if carries == nil {
		return nil
	}
	return exchange.Through(carries, dial)
}

// Mailed lets violations see an e-mail; false drops it.
func (b Broken) Mailed(m *store.Mail) bool {
	for _, s := range b {
		if s.mail != nil && !s.mail(m) {
			return false
		}
	}
	return true
}

// ServeHTTP lets next answer a request, with the violations around it. maxBody bounds
// what the request carries, in bytes.
func (b Broken) ServeHTTP(w http.ResponseWriter, r *http.Request, next http.Handler, maxBody int64) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody+1))
	if err != nil {
		return
	}
	original := r.Clone(r.Context())
	q := &exchange.Request{HTTP: r, Body: body}
	for _, s := range b {
		if s.ask != nil {
			s.ask(q)
		}
	}
	q.HTTP.Body, q.HTTP.ContentLength = exchange.NewBody(q.Body)
	recorded := httptest.NewRecorder()
	next.ServeHTTP(recorded, q.HTTP)
	a := &exchange.Answer{HTTP: original, Status: recorded.Code, Header: recorded.Header().Clone(), Body: recorded.Body.Bytes()}
	for _, s := range b {
		if s.tell != nil {
			s.tell(a)
		}
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}
