package api

// LostByte stands in the JSON text of a source's row for a byte that is no
// UTF-8. It reads as U+FFFD, and nobody else writes that character like this: so
// text that was damaged can be told from text that holds the character.
const LostByte = `\uFFfd`
