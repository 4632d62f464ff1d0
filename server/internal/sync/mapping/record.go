package mapping

import (
	"time"

	"github.com/destkit/destkit/internal/liquid"
	"github.com/destkit/destkit/server/api"
)

// Env is what the records of one run depend on besides the configuration.
type Env struct {
	RunID, SyncID int64
	Now           time.Time // what "now" means to templates; zero: the system's clock
	// DestinationType decides how nested names are written: custom_api keys
	// records by the whole name, local_files get objects, and emulated
	// types, whose fields know no objects either, get the object as JSON text.
	DestinationType string
	// HiddenIdentifier is the field that identifies records where no mapping
	// does, as the destination names it; "" where it has none.
	HiddenIdentifier string
	// Segments are those of the dataset that the sync reads, for mappings of type
	// segment_membership, whose rows have a column more (SegmentColumn).
	Segments []Segment
}

// InvalidNull is the one reason of invalid records that is the same for all of them (spec
// 2.9, source_record_invalids). Others name the field and what is wrong.
const InvalidNull = "the primary identifier is NULL"

// Field is a field of the destination as the records of a plan have it: the
// name is the key of the record's member.
type Field struct {
	api.DestinationField
	ActiveIdentifier bool
	Hidden           bool // clients never see it
	New              bool // the object does not have it yet: it is created on write
	// The destination's handling of the value, where supported.
	PreserveValues            bool
	Merge                     bool // into the array that is there
	LookupObject, LookupField string
}

// Plan turns rows of one run into records. It is safe for parallel use.
type Plan struct {
	columns     []string
	steps       []planStep
	fields      []Field
	identifier  string
	keyStep     int // the step of the identifier; -1: none, or generated
	generated   bool
	keyColumn   string
	reads       []int // places of the columns that templates read
	limits      liquid.Limits
	segments    map[string]string // names by the ids in the column of segments
	volatile    []byte            // the member that differs from run to run
	fingerprint [16]byte
}

// Columns are the columns that must be read, in the order in which AppendRecord
// wants their values.
func (p *Plan) Columns() []string { return p.columns }

// Identifier is the destination field that identifies records; "" where there
// is none.
func (p *Plan) Identifier() string { return p.identifier }

// Generated reports whether no mapping is the identifier, so that the key of
// a record is a hash of its content: equal rows have equal keys, and a
// changed row is another one.
func (p *Plan) Generated() bool { return p.generated }

// KeyColumn names the column whose values, ordered by the bytes of their JSON
// text, come in the order of the keys; "" where keys have to be sorted. A source
// may hold values of other types than its columns are declared with, so a
// reader checks the order all the same.
func (p *Plan) KeyColumn() string { return p.keyColumn }

// Fields are the members of the records in their order, one for each top-level
// name.
func (p *Plan) Fields() []Field { return p.fields }

// Fingerprint changes when anything changes that changes records.
func (p *Plan) Fingerprint() [16]byte { return p.fingerprint }

// stepKind is what a step writes.
type stepKind uint8

const (
	stepColumn stepKind = iota
	stepLiteral
	stepTemplate
	stepSegments
	stepOpen  // the beginning of a nested object
	stepClose // its end
)

// planStep writes one member of a record, or opens or closes an object.
type planStep struct {
	kind     stepKind
	lead     []byte // the name, quoted, and the colon
	name     string // as the client knows it
	column   int    // place in the row
	wire     wire
	array    bool
	exact    bool // floats of the column are the shortest text already
	skipNull bool // sync_null_values is false
	asText   bool // stepClose: the object is written as JSON text
	literal  []byte
	template *liquid.Template
}

// wire is the type of a value in a record.
type wire uint8

const (
	wireAny wire = iota // unchanged
	wireBoolean
	wireInteger
	wireFloat
	wireDecimal
	wireDate
	wireDateTime
	wireString
)

var wireNames = [...]string{
	wireBoolean: api.TypeBoolean, wireInteger: api.TypeInteger, wireFloat: api.TypeFloat, wireDecimal: api.TypeDecimal,
	wireDate: api.TypeDate, wireDateTime: api.TypeDateTime, wireString: api.TypeString,
}
