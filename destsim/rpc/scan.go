package rpc

// skipText scans a whole text: one value, white space around it.
func skipText(b []byte) (int, fault) {
	i := skipSpace(b, 0)
	if i == len(b) {
		return i, faultEnd
	}
	i, f := skipValue(b, i, 0)
	if f != faultNone {
		return i, f
	}
	if i = skipSpace(b, i); i != len(b) {
		return i, faultTrailing
	}
	return i, faultNone
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipValue scans the value whose first byte is b[i]; depth counts the
// containers around it. It returns the index after the value, or the index of
// the fault.
func skipValue(b []byte, i, depth int) (int, fault) {
	switch b[i] {
	case '"':
		return skipString(b, i+1)
	case '{':
		return skipObject(b, i, depth+1)
	case '[':
		return skipArray(b, i, depth+1)
	default:
		return skipScalar(b, i)
	}
}

// skipScalar scans a number or a literal.
func skipScalar(b []byte, i int) (int, fault) {
	switch c := b[i]; {
	case c-'0' <= 9, c == '-':
		return skipNumber(b, i)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}
	return i, faultValue
}

func skipLiteral(b []byte, i int, word string) (int, fault) {
	if len(b)-i < len(word) {
		return i, faultLiteral
	}
	if string(b[i:i+len(word)]) != word {
		return i, faultLiteral
	}
	return i + len(word), faultNone
}

func skipObject(b []byte, i, depth int) (int, fault) {
	if depth > maxDepth {
		return i, faultDepth
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, faultNone
	}
	for {
		_, v, f := skipKey(b, i)
		if f != faultNone {
			return v, f
		}
		if i, f = skipValue(b, v, depth); f != faultNone {
			return i, f
		}
		var more bool
		if i, more, f = nextMember(b, i); f != faultNone || !more {
			return i, f
		}
	}
}

// skipKey scans `"key" :` at i. keyEnd is the index of the closing quote; v is
// the index of the value's first byte, or of the fault.
func skipKey(b []byte, i int) (keyEnd, v int, f fault) {
	if i >= len(b) {
		return 0, i, faultEnd
	}
	if b[i] != '"' {
		return 0, i, faultKey
	}
	if i, f = skipString(b, i+1); f != faultNone {
		return 0, i, f
	}
	keyEnd = i - 1
	if i = skipSpace(b, i); i >= len(b) {
		return 0, i, faultEnd
	}
	if b[i] != ':' {
		return 0, i, faultColon
	}
	if i = skipSpace(b, i+1); i >= len(b) {
		return 0, i, faultEnd
	}
	return keyEnd, i, faultNone
}

// nextMember scans what follows a member: a comma (more, i at the next key) or
// the closing brace (i after it).
func nextMember(b []byte, i int) (next int, more bool, f fault) {
	if i = skipSpace(b, i); i >= len(b) {
		return i, false, faultEnd
	}
	switch b[i] {
	case ',':
		return skipSpace(b, i+1), true, faultNone
	case '}':
		return i + 1, false, faultNone
	}
	return i, false, faultObject
}

// nextElement is nextMember for arrays; with more, b[next] exists.
func nextElement(b []byte, i int) (next int, more bool, f fault) {
	if i = skipSpace(b, i); i >= len(b) {
		return i, false, faultEnd
	}
	switch b[i] {
	case ',':
		if i = skipSpace(b, i+1); i >= len(b) {
			return i, false, faultEnd
		}
		return i, true, faultNone
	case ']':
		return i + 1, false, faultNone
	}
	return i, false, faultArray
}

// firstElement steps into the array that opens at i; more is false when it is
// empty, and then next is the index after it.
func firstElement(b []byte, i int) (next int, more bool, f fault) {
	if i = skipSpace(b, i+1); i >= len(b) {
		return i, false, faultEnd
	}
	if b[i] == ']' {
		return i + 1, false, faultNone
	}
	return i, true, faultNone
}

func skipArray(b []byte, i, depth int) (int, fault) {
	if depth > maxDepth {
		return i, faultDepth
	}
	i, more, f := firstElement(b, i)
	for more && f == faultNone {
		if i, f = skipValue(b, i, depth); f != faultNone {
			return i, f
		}
		i, more, f = nextElement(b, i)
	}
	return i, f
}
