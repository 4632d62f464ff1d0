package mapping

import (
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// computeParts fills day, hour and minute of a schedule from its expression
// where each is one number: replies show them next to the expression.
func computeParts(s *api.Schedule) {
	fields := strings.Fields(text(s.CronExpression))
	if len(fields) != 5 {
		return
	}
	number := func(field string, highest int64) *int64 {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 0 || n > highest {
			return nil
		}
		return &n
	}
	s.Minute, s.Hour = number(fields[0], 59), number(fields[1], 23)
	// Both 0 and 7 are Sunday.
	if day := number(fields[4], 7); day != nil {
		s.Day = &days[*day%7]
	}
}
