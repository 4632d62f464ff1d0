// Package values makes what a run sends: ordinary values of each declared type, keys
// that carry the run, and the values that show what an endpoint does to a value on its
// way. It reads the difference between a value that was sent and the one that is stored.
// All of it is pure: it makes no call, and leaves to others which record carries a
// value and what a difference breaks.
package values
