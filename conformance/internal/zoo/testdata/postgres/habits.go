package postgres

// habits are right and unusual: what they change of an endpoint.
var habits = map[string]func(*endpoint){
	"pool-of-one":              func(e *endpoint) { e.speed["maximum_parallel_batches"] = 1 },
	"serializable-and-retried": func(*endpoint) {},
	"all-at-once-then-single":  func(*endpoint) {},
	"moments-to-the-second":    func(*endpoint) {},
	"history-by-trigger":       func(*endpoint) {},
}
