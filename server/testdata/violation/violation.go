// Package violation breaks the rules of the service on purpose, one each, so that the
// judge of services can be judged: requests and replies of the API, calls to
// destinations, certificates, e-mails and runs pass here where a rule is to be broken.
// What a violation needs of the service is handed to it.
package violation

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"

	"github.com/destkit/destkit/server/internal/seam"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// Violation describes one way in which the service can break one rule on
// purpose, so that a judge of services can be judged. ID is the id of the check
// that must notice it ("TOK-008"), with a suffix for the second and further ways
// ("TOK-008.2").
type Violation struct {
	ID string
	// Changes says in one sentence what differs from the clean service.
	Changes string
	// Also lists the other checks that the same behaviour trips.
	Also []Also
}

// Also is one more check that a violation trips, and why.
type Also struct {
	ID, Why string
}

// A violation is exactly one changed behaviour, put into the narrowest place
// where its check looks. arm is called once for every service that is configured
// with it; what it has to remember are variables of arm, guarded by a lock or
// atomics. It decides by what the protocol says (operation, field, method, count
// of calls), never by a name, user agent or order of a judge.
//
// Nil seams do not exist: a service without violations runs as if they had never
// been written. Where seams are too coarse, executor.Deviations gets a field.
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
type Service struct{ *seam.Service }

// Key opens the first workspace.
func (s *Service) Key() string {
	_, key := s.First()
	return key
}

// Token opens the first organization.
func (s *Service) Token() string {
	token, _ := s.First()
	return token
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
		countersViolations(),
		alertsViolations(),
		lifeViolations(),
	)
}

// All are the violations that there are.
func All() []Violation {
	var out []Violation
	for _, v := range violations() {
		out = append(out, v.Violation)
	}
	return out
}

// breaks is a violation with a single seam set.
func breaks(id, changes string, s seams, also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(*Service) seams { return s }}
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
		return nil, fmt.Errorf("there is no violation %q", id)
	}
	return found, nil
}

// Break lets the service that is made with a configuration, a *server.Config, break the
// rules with these ids.
func Break(config any, ids ...string) error {
	chosen, err := find(ids)
	if err != nil || len(chosen) == 0 {
		return err
	}
	seam.Set(config, func(in *seam.Service) seam.Seams { return armed(chosen, &Service{in}) })
	return nil
}

func armed(chosen []violation, in *Service) seam.Seams {
	var all broken
	var carries []exchange.Carry
	var out seam.Seams
	for _, v := range chosen {
		s := v.arm(in)
		all = append(all, s)
		if s.carry != nil {
			carries = append(carries, s.carry)
		}
		if s.tls != nil && out.TLS == nil {
			out.TLS = s.tls
		}
		if s.engine != nil {
			s.engine(&out.Deviations)
		}
	}
	if carries != nil {
		out.Calls = exchange.Through(carries, in.Dial)
	}
	out.API, out.Mail = all.around, all.mailed
	return out
}

// broken are the rules that one service breaks.
type broken []seams

// mailed lets violations see an e-mail; false drops it.
func (b broken) mailed(m *store.Mail) bool {
	for _, s := range b {
		if s.mail != nil && !s.mail(m) {
			return false
		}
	}
	return true
}

// maxBody is the most that a service takes in a request, in bytes.
const maxBody = 4 << 20

// around lets next answer requests, with the violations around it.
func (b broken) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	})
}
