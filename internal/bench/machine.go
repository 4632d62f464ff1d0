package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is what was measured on.
type machine struct {
	processor string
	cores     int
	memory    string
	kernel    string
	golang    string
}

// thisMachine reads what Linux says; elsewhere most of it is not known.
func thisMachine() machine {
	m := machine{processor: "unknown processor", cores: runtime.NumCPU(), memory: "unknown", kernel: runtime.GOOS, golang: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if name := after(text, "model name"); name != "" {
			m.processor = name
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb float64
		if _, err := fmt.Sscan(after(text, "MemTotal"), &kb); err == nil {
			m.memory = fmt.Sprintf("%.0f GiB", kb/(1<<20))
		}
	}
	// The kernel matters as much as the processor: most of a small request is its work.
	if out, err := exec.Command("uname", "-sr").Output(); err == nil {
		m.kernel = strings.TrimSpace(string(out))
	}
	return m
}

// after is what stands behind a name and a colon.
func after(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if rest, ok := strings.CutPrefix(string(line), name); ok {
			_, value, _ := strings.Cut(rest, ":")
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m machine) text() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, %s, %s", m.processor, m.cores, m.memory, m.kernel, m.golang)
}
