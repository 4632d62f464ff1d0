package destination

import "golang.org/x/text/unicode/norm"

// normalise brings a text into Unicode form NFC, to recognise a key that an
// endpoint has normalised.
func normalise(s string) string { return norm.NFC.String(s) }
