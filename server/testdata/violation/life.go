package violation

import (
	"net/http"
	"time"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// lifeViolations break schedules, pauses and the life of runs (spec 2.6, 3).
func lifeViolations() []violation {
	return []violation{
		scheduled("LIFE-001", "an hourly schedule runs 20 minutes late", "hourly", func(s map[string]any) { later(s, "minute", 20, 60) }),
		scheduled("LIFE-002", "the hour of a daily schedule is read five time zones away", "daily", func(s map[string]any) { later(s, "hour", 5, 24) }),
		scheduled("LIFE-003", "a weekly schedule runs on the day after its day", "weekly", nextDay),
		scheduled("LIFE-004", "a cron expression is kept and never run", "expression", neverRuns),
		scheduled("LIFE-005", "quarter_hourly is read as hourly", "quarter_hourly", func(s map[string]any) { s["frequency"], s["minute"] = "hourly", 0 }),
		scheduled("LIFE-007", "never is read as hourly", "never", func(s map[string]any) {
			if s["minute"] == nil && s["hour"] == nil {
				s["frequency"], s["minute"] = "hourly", 0
			}
		}),
		breaks("LIFE-008", "a pause is stored nowhere", seams{ask: pausedTo(true, false)}),
		onSync("LIFE-010", "a sync of a sequence never runs", func(y map[string]any) {
			if triggers := exchange.Inside(y, "mode", "triggers"); triggers["sync_sequence"] != nil {
				delete(triggers, "sync_sequence")
				triggers["schedule"] = map[string]any{"frequency": "never"}
			}
		}),
		breaks("LIFE-012", "every run says that somebody has triggered it", seams{tell: func(a *exchange.Answer) {
			if a.IsAny("GET /syncs/*/sync_runs, GET /sync_runs/*") {
				a.Data(func(run map[string]any) {
					if reason, ok := run["sync_trigger_reason"].(map[string]any); ok {
						reason["ui_tag"] = "Manual"
					}
				})
			}
		}}),
		breaks("LIFE-013", "a run that was skipped says that it has completed", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*") {
				a.Data(func(run map[string]any) {
					if run["status"] == "skipped" {
						run["status"] = "completed"
					}
				})
			}
		}}),
		breaks("LIFE-014", "a run that was cancelled does not say so", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*") {
				a.Data(func(run map[string]any) { run["canceled"] = false })
			}
		}}),
		breaks("LIFE-015", "a cancel is answered and not carried out", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /sync_runs/*/cancel") {
				q.HTTP.URL.Path = q.HTTP.URL.Path[:len(q.HTTP.URL.Path)-len("/cancel")]
				q.HTTP.Method = http.MethodGet
			}
		}}, Also{"LIFE-014", "the run goes on and completes"}),
	}
}

// scheduled changes the schedule of syncs with a frequency that are made or
// changed.
func scheduled(id, changes, frequency string, change func(map[string]any), also ...Also) violation {
	v := breaks(id, changes, seams{ask: func(q *exchange.Request) {
		if !q.Is("POST /syncs") && !q.Is("PATCH /syncs/*") {
			return
		}
		q.Edit(func(y map[string]any) {
			if s := exchange.Inside(y, "mode", "triggers", "schedule"); s != nil && s["frequency"] == frequency {
				change(s)
			}
		})
	}})
	v.Also = also
	return v
}

func neverRuns(s map[string]any) {
	delete(s, "cron_expression")
	s["frequency"] = "never"
}

// nextDay takes the day of a schedule for the one after it.
func nextDay(s map[string]any) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if s["day"] == day.String() {
			s["day"] = ((day + 1) % 7).String()
			return
		}
	}
}

// later moves a part of a schedule on, round the clock.
func later(s map[string]any, part string, by, of int64) {
	n, _ := exchange.Int(s[part])
	s[part] = (n + by) % of
}

// pausedTo stores another word for one that an update brings.
func pausedTo(from, to bool) func(*exchange.Request) {
	return func(q *exchange.Request) {
		if q.Is("PATCH /syncs/*") {
			q.Edit(func(y map[string]any) {
				if y["paused"] == from {
					y["paused"] = to
				}
			})
		}
	}
}
