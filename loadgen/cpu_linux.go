package loadgen

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// readCPU reads the clocks of the processors.
func readCPU() processorTimes {
	c := processorTimes{At: time.Now()}
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil {
		c.Own = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	}
	text, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if err != nil || len(fields) < 9 || fields[0] != "cpu" {
		return c
	}
	// user nice system idle iowait irq softirq steal, in hundredths of a second
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return c
		}
		if i != 3 && i != 4 {
			c.Machine += time.Duration(n) * 10 * time.Millisecond
		}
	}
	c.Known = true
	return c
}
