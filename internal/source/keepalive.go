package source

import (
	"net"
	"time"
)

// keptAlive makes connections that end when no one is there any more. Where packets
// vanish without a word (a firewall that has forgotten the connection, a cable that was
// pulled) the system lets a write wait for a quarter of an hour, and a read for ever.
//
// They end with an error when the peer has acknowledged nothing for about so
// long, from a few seconds on: neither sent data nor, without any, keep-alive
// probes.
//
// On Linux a connection ends, too, on which the peer does not accept sent data for so
// long. So it must not be less than a server may well be busy with accepted data.
func keptAlive(silence time.Duration) *net.Dialer {
	return &net.Dialer{
		// Where there is no limit for sent data the probes at least add up to it.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 4, Count: 2},
		Control:         unacknowledged(silence),
	}
}
