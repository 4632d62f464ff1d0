package conformance

// docString is the quoted text below a step.
type docString struct{ text, mediaType string }

// Text returns the text without its quotes.
func (d *docString) Text() string { return d.text }

// MediaType returns the word behind the opening quotes, or "".
func (d *docString) MediaType() string { return d.mediaType }
