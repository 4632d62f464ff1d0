package rawconn

// The poller of Linux reports every byte that comes after a read that did not
// fill its buffer.
const known = true
