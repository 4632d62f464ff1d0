// Package zoo is a collection of custom destinations as real authors write them, each with one honest
// mistake, or with one habit that is right and unusual. A mistake is a code path of the base server of its
// language in testdata; the tables here list which checks must see it.
package zoo_test

// The languages of the servers.
const (
	Node   = "Node"
	Python = "Python"
	Go     = "Go"
	// SQLite is Python on a file of SQLite, as a newcomer writes it.
	SQLite = "Python-SQLite"
	// Postgres is Go with a pool of connections to PostgreSQL.
	Postgres = "Go-PostgreSQL"
	// EventLog is Python with an append log instead of rows.
	EventLog = "Python-log"
	// Express is Node on SQLite, as after a tutorial of a web framework.
	Express = "Node-SQLite"
)

// Languages are all of them.
func Languages() []string { return []string{Node, Python, Go, SQLite, Postgres, EventLog, Express} }

// Mistake is one mistake of an author and what a judge must report about it.
type Mistake struct {
	Name     string // the path of its server: /m/NAME/rpc
	Language string
	Sentence string // what the author did
	// Cause is part of the cause that a run with read-back must state as observed; ""
	// where none can be.
	Cause string
	// Finds are checks whose sentences are about this mistake: with read-back at
	// least one of them fails.
	Finds []string
	// Never are checks whose failure would be a wrong diagnosis.
	Never []string
	// Race is a mistake that shows only when calls meet at the same moment: a run that
	// does not see it is repeated, twice at most.
	Race bool
	// Slip is a mistake against a recommendation only: a warning is right.
	Slip bool
	Setting
}

// Habit is a right and unusual endpoint: none of its checks may fail or warn.
type Habit struct {
	Name     string
	Language string
	Sentence string
	// Warns are the checks that warn because the author has limits that a recommendation
	// is against.
	Warns []string
	Setting
}

// Setting is what the author gives to the judge with the URL. The zero value
// names the first object.
type Setting struct {
	// Seed makes the keys of a run, 7 when zero.
	Seed uint64
	// Large judges bodies of megabytes too.
	Large   bool
	Objects []string
	// Own requires a separate process, since this one ends; Restarts one that a supervisor starts
	// again.
	Own, Restarts bool
	// AlterSchema gives the hook that adds a field.
	AlterSchema bool
	// KeyFrom and KeyTo bound integer keys, KeyTemplate makes texts.
	KeyFrom, KeyTo int64
	KeyTemplate    string
	SkipConvention string
	// Code is a secret that the URL carries.
	Code string
	// Fixtures are values by object and field, as JSON.
	Fixtures map[string]map[string]string
}

// Mistakes are all mistakes, language by language.
func Mistakes() []Mistake {
	var out []Mistake
	for _, part := range [][]Mistake{
		named(Node, nodeEnvelope), named(Node, nodeBatches), named(Node, nodeValues),
		named(Python, pythonPlanning), named(Python, pythonBatches), named(Python, pythonSQL), named(Python, pythonValues),
		named(Go, goCalls), named(Go, goBatches), named(Go, goValues),
		named(SQLite, sqliteBatches), named(SQLite, sqliteRows), named(SQLite, sqliteValues),
		named(Postgres, postgresBatches), named(Postgres, postgresValues), named(EventLog, eventlogRows), named(Express, expressAll),
	} {
		out = append(out, part...)
	}
	return out
}

// Habits are all habits.
func Habits() []Habit {
	return unusual
}

func named(language string, all []Mistake) []Mistake {
	out := make([]Mistake, len(all))
	for i, m := range all {
		m.Language = language
		out[i] = m
	}
	return out
}

// Objects are the objects that the base server of a language is judged on.
func Objects(language string) []string {
	switch language {
	case Python:
		return []string{"person", "device"}
	case Go:
		return []string{"account", "invoice"}
	case SQLite:
		return []string{"customers", "devices"}
	case Postgres:
		return []string{"account", "item"}
	case EventLog:
		return []string{"order"}
	case Express:
		return []string{"product"}
	default:
		return []string{"contact", "order"}
	}
}
