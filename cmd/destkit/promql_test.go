package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/VictoriaMetrics/metricsql"
)

// The parser takes more than Prometheus does: the list holds the parts that queries may use.
var (
	promFunctions = []string{"rate", "increase", "histogram_quantile"}
	promOperators = []string{"+", "-", "*", "/", "and", "or", "unless"}
	promSums      = []string{"sum", "max", "min", "avg", "count"}
)

// queryCheck walks through a query.
type queryCheck struct {
	metrics map[string]family
	names   []string
	problem error
}

func (c *queryCheck) fail(format string, args ...any) {
	if c.problem == nil {
		c.problem = fmt.Errorf(format, args...)
	}
}

// checkQuery checks a query of a dashboard and the labels of its legend against the
// scraped metrics; it returns the metrics that it uses.
func checkQuery(query, legend string, metrics map[string]family) ([]string, error) {
	query = strings.NewReplacer("$__rate_interval", "5m", "$job", ".+").Replace(query)
	e, err := metricsql.Parse(query)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	c := &queryCheck{metrics: metrics}
	labels := c.labels(e, false)
	for _, m := range inLegend.FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(labels, m[1]) {
			c.fail("the legend has %s, and the result has only %v", m[1], labels)
		}
	}
	return c.names, c.problem
}

// labels are those of the result of an expression; rated: a rate is made of it.
func (c *queryCheck) labels(e metricsql.Expr, rated bool) []string {
	switch e := e.(type) {
	case *metricsql.NumberExpr:
		return nil
	case *metricsql.MetricExpr:
		return c.metric(e, rated)
	case *metricsql.RollupExpr:
		return c.labels(e.Expr, rated)
	case *metricsql.FuncExpr:
		return c.function(e)
	case *metricsql.AggrFuncExpr:
		return c.sum(e)
	case *metricsql.BinaryOpExpr:
		left, right := c.labels(e.Left, false), c.labels(e.Right, false)
		if !slices.Contains(promOperators, e.Op) {
			c.fail("the operator %s is none of %v", e.Op, promOperators)
		}
		for _, name := range append(e.GroupModifier.Args, e.JoinModifier.Args...) {
			if !slices.Contains(left, name) || !slices.Contains(right, name) {
				c.fail("%s has no label %s", strings.Join(c.names, " or "), name)
			}
		}
		return left
	}
	c.fail("%T is not looked into", e)
	return nil
}

// metric is a selector: a name, and labels that it has.
func (c *queryCheck) metric(e *metricsql.MetricExpr, rated bool) []string {
	name, known := "", family{}
	for _, filters := range e.LabelFilterss {
		for _, f := range filters {
			if f.Label == "__name__" {
				name = f.Value
			}
		}
		if name == "" {
			c.fail("a selector without a name")
			return nil
		}
		var ok bool
		if known, ok = c.metrics[name]; !ok {
			c.fail("there is no metric %s", name)
			return nil
		}
		for _, f := range filters {
			if f.Label != "__name__" && !slices.Contains(known.all(), f.Label) {
				c.fail("%s has no label %s", name, f.Label)
			}
		}
	}
	if rated && known.kind == "gauge" {
		c.fail("%s is a gauge: it has no rate", name)
	}
	c.names = append(c.names, name)
	return known.all()
}

// all labels: those of the sample, and those that Prometheus adds.
func (f family) all() []string { return append(slices.Clone(f.labels), "job", "instance") }

func (c *queryCheck) function(e *metricsql.FuncExpr) []string {
	if !slices.Contains(promFunctions, e.Name) {
		c.fail("the function %s is none of %v", e.Name, promFunctions)
		return nil
	}
	rate := e.Name == "rate" || e.Name == "increase"
	if rate {
		if r, ok := e.Args[0].(*metricsql.RollupExpr); !ok || r.Window == nil {
			c.fail("%s without a window", e.Name)
		}
	}
	var labels []string
	for _, arg := range e.Args {
		labels = c.labels(arg, rate)
	}
	if !rate && !slices.Contains(labels, "le") {
		c.fail("histogram_quantile without le")
	}
	return labels
}

// sum is an aggregation: only the labels that it names are left.
func (c *queryCheck) sum(e *metricsql.AggrFuncExpr) []string {
	if !slices.Contains(promSums, e.Name) || strings.EqualFold(e.Modifier.Op, "without") {
		c.fail("the aggregation %s is none of %v by labels", e.Name, promSums)
	}
	labels := c.labels(e.Args[0], false)
	for _, name := range e.Modifier.Args {
		if !slices.Contains(labels, name) {
			c.fail("%s has no label %s", strings.Join(c.names, " or "), name)
		}
	}
	return e.Modifier.Args
}
