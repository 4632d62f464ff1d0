package zoo_test

var causesOfPostgres = map[string]explanation{
	"Go-PostgreSQL/connection-not-returned":  {right: "connection.*(return|released|pool|in use|closed)|pool"},
	"Go-PostgreSQL/aborted-transaction":      {right: "transaction|rolled back|savepoint"},
	"Go-PostgreSQL/circuit-breaker":          {right: "circuit breaker"},
	"Go-PostgreSQL/rounded-in-the-bulk-path": {right: "large batches.*fewer digits"},
	"Go-PostgreSQL/null-in-the-bulk-path":    {right: "(bulk|batch|large|full|more).*(null|empty)|null.*(bulk|large|full|empty)|null is written as a text"},
	"Go-PostgreSQL/one-statement-for-all":    {right: "second time|twice|one statement|same (key|identifier|record)"},
	"Go-PostgreSQL/results-from-returning":   {right: "position|order|another record|shift|belong to|from the first"},
	"Go-PostgreSQL/delete-without-commit":    {right: "commit|transaction|later|not awaited|asynchron"},
	"Go-PostgreSQL/changed-at-by-trigger":    {right: "trigger|default|not mapped|sets .{0,30}(by )?itself|current time|time of the (write|change)|ON UPDATE"},
	"Go-PostgreSQL/nulls-stripped":           {right: "null.*(ignored|left out|no change|dropped|keeps|old)|coalesce"},
	"Go-PostgreSQL/varchar-120":              {right: "cut|truncat|120|shorter"},
	"Go-PostgreSQL/char-column":              {right: "(space|blank|white).{0,30}end|trail|trimmed|padd"},
	"Go-PostgreSQL/timestamp-without-zone":   {right: "zone|local time|hours|\\bZ\\b"},
	"Go-PostgreSQL/dates-a-day-early":        {right: "day (early|earlier|before|off)|one day|zone|midnight|days?"},
	"Go-PostgreSQL/numeric-of-two-places":    {right: "round|places|digits|scale|precision"},
	"Go-PostgreSQL/real-column":              {right: "single precision|32 bits|digits|precision|narrow|rounded"},
	"Go-PostgreSQL/array-literal-by-hand":    {right: "comma|quote|joined|separat|literal|split"},
	"Go-PostgreSQL/escape-strings":           {right: "backslash|escape|decoded"},
}
