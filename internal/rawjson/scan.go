package rawjson

// SkipText scans a whole text: one value, white space around it.
func SkipText(b []byte) (int, Fault) {
	i := SkipSpace(b, 0)
	if i == len(b) {
		return i, FaultEnd
	}
	i, f := SkipValue(b, i, 0)
	if f != FaultNone {
		return i, f
	}
	if i = SkipSpace(b, i); i != len(b) {
		return i, FaultTrailing
	}
	return i, FaultNone
}

func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// SkipValue scans the value whose first byte is b[i]; depth counts the
// containers around it. It returns the index after the value, or the index of
// the fault.
func SkipValue(b []byte, i, depth int) (int, Fault) {
	switch b[i] {
	case '"':
		return SkipString(b, i+1)
	case '{':
		return skipObject(b, i, depth+1)
	case '[':
		return skipArray(b, i, depth+1)
	default:
		return skipScalar(b, i)
	}
}

// skipScalar scans a number or a literal.
func skipScalar(b []byte, i int) (int, Fault) {
	switch c := b[i]; {
	case c-'0' <= 9, c == '-':
		return skipNumber(b, i)
	case c == 't':
		return SkipLiteral(b, i, "true")
	case c == 'f':
		return SkipLiteral(b, i, "false")
	case c == 'n':
		return SkipLiteral(b, i, "null")
	}
	return i, faultValue
}

func SkipLiteral(b []byte, i int, word string) (int, Fault) {
	if len(b)-i < len(word) {
		return i, faultLiteral
	}
	if string(b[i:i+len(word)]) != word {
		return i, faultLiteral
	}
	return i + len(word), FaultNone
}

func skipObject(b []byte, i, depth int) (int, Fault) {
	if depth > maxDepth {
		return i, faultDepth
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, FaultNone
	}
	for {
		_, v, f := SkipKey(b, i)
		if f != FaultNone {
			return v, f
		}
		if i, f = SkipValue(b, v, depth); f != FaultNone {
			return i, f
		}
		var more bool
		if i, more, f = NextMember(b, i); f != FaultNone || !more {
			return i, f
		}
	}
}

// SkipKey scans `"key" :` at i. keyEnd is the index of the closing quote; v is
// the index of the value's first byte, or of the fault.
func SkipKey(b []byte, i int) (keyEnd, v int, f Fault) {
	if i >= len(b) {
		return 0, i, FaultEnd
	}
	if b[i] != '"' {
		return 0, i, faultKey
	}
	if i, f = SkipString(b, i+1); f != FaultNone {
		return 0, i, f
	}
	keyEnd = i - 1
	if i = SkipSpace(b, i); i >= len(b) {
		return 0, i, FaultEnd
	}
	if b[i] != ':' {
		return 0, i, faultColon
	}
	if i = SkipSpace(b, i+1); i >= len(b) {
		return 0, i, FaultEnd
	}
	return keyEnd, i, FaultNone
}

// NextMember scans what follows a member: a comma (more, i at the next key) or
// the closing brace (i after it).
func NextMember(b []byte, i int) (next int, more bool, f Fault) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, false, FaultEnd
	}
	switch b[i] {
	case ',':
		return SkipSpace(b, i+1), true, FaultNone
	case '}':
		return i + 1, false, FaultNone
	}
	return i, false, faultObject
}

// NextElement is NextMember for arrays; with more, b[next] exists.
func NextElement(b []byte, i int) (next int, more bool, f Fault) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, false, FaultEnd
	}
	switch b[i] {
	case ',':
		if i = SkipSpace(b, i+1); i >= len(b) {
			return i, false, FaultEnd
		}
		return i, true, FaultNone
	case ']':
		return i + 1, false, FaultNone
	}
	return i, false, faultArray
}

// FirstElement steps into the array that opens at i; more is false when it is
// empty, and then next is the index after it.
func FirstElement(b []byte, i int) (next int, more bool, f Fault) {
	if i = SkipSpace(b, i+1); i >= len(b) {
		return i, false, FaultEnd
	}
	if b[i] == ']' {
		return i + 1, false, FaultNone
	}
	return i, true, FaultNone
}

func skipArray(b []byte, i, depth int) (int, Fault) {
	if depth > maxDepth {
		return i, faultDepth
	}
	i, more, f := FirstElement(b, i)
	for more && f == FaultNone {
		if i, f = SkipValue(b, i, depth); f != FaultNone {
			return i, f
		}
		i, more, f = NextElement(b, i)
	}
	return i, f
}
