package rawjson

// Walk walks the members of one validated object: the caller has validated
// the text, so no fault can occur and none is looked for.
type Walk struct {
	b    []byte
	i    int
	more bool
}

// WalkObject starts a walk over the validated object in raw (white space
// before it is skipped); ok is false when raw is another kind of value.
func WalkObject(raw []byte) (m Walk, ok bool) {
	i := SkipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return m, false
	}
	i = SkipSpace(raw, i+1)
	return Walk{b: raw, i: i, more: raw[i] != '}'}, true
}

// Next gives the next member: the text of its key and its raw value.
func (m *Walk) Next() (key, raw []byte, ok bool) {
	if !m.more {
		return nil, nil, false
	}
	end, v, f := SkipKey(m.b, m.i)
	if f != FaultNone {
		return nil, nil, false
	}
	key = PlainKey(m.b[m.i+1 : end])
	after, f := SkipValue(m.b, v, 0)
	if f != FaultNone {
		return nil, nil, false
	}
	raw = m.b[v:after:after]
	m.i, m.more, _ = NextMember(m.b, after)
	return key, raw, true
}

// Pick puts the raw values of the named members of a validated object into
// dst, nil where one is absent; the last of a repeated member counts.
func Pick(raw []byte, dst [][]byte, names ...string) bool {
	m, ok := WalkObject(raw)
	if !ok {
		return false
	}
	for key, val, ok := m.Next(); ok; key, val, ok = m.Next() {
		for k, name := range names {
			if string(key) == name {
				dst[k] = val
			}
		}
	}
	return true
}

// ScanObject is Pick for a whole text that is not validated yet: it validates
// and picks in one pass. object is false when the text is another kind of value.
func ScanObject(b []byte, dst [][]byte, names ...string) (object bool, at int, f Fault) {
	i := SkipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		at, f = SkipText(b)
		return false, at, f
	}
	i = SkipSpace(b, i+1)
	more := true
	if i < len(b) && b[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := SkipKey(b, i)
		if f != FaultNone {
			return true, v, f
		}
		key := PlainKey(b[i+1 : end])
		if i, f = SkipValue(b, v, 1); f != FaultNone {
			return true, i, f
		}
		for k, name := range names {
			if string(key) == name {
				dst[k] = b[v:i:i]
			}
		}
		if i, more, f = NextMember(b, i); f != FaultNone {
			return true, i, f
		}
	}
	if i = SkipSpace(b, i); i != len(b) {
		return true, i, FaultTrailing
	}
	return true, i, FaultNone
}
