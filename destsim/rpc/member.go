package rpc

// members walks the members of one validated object: the caller has validated
// the text, so no fault can occur and none is looked for.
type members struct {
	b    []byte
	i    int
	more bool
}

// walkObject starts a walk over the validated object in raw (white space
// before it is skipped); ok is false when raw is another kind of value.
func walkObject(raw []byte) (m members, ok bool) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return m, false
	}
	i = skipSpace(raw, i+1)
	return members{b: raw, i: i, more: raw[i] != '}'}, true
}

// next gives the next member: the text of its key and its raw value.
func (m *members) next() (key, raw []byte, ok bool) {
	if !m.more {
		return nil, nil, false
	}
	end, v, f := skipKey(m.b, m.i)
	if f != faultNone {
		return nil, nil, false
	}
	key = plainKey(m.b[m.i+1 : end])
	after, f := skipValue(m.b, v, 0)
	if f != faultNone {
		return nil, nil, false
	}
	raw = m.b[v:after:after]
	m.i, m.more, _ = nextMember(m.b, after)
	return key, raw, true
}

// pick puts the raw values of the named members of a validated object into
// dst, nil where one is absent; the last of a repeated member counts.
func pick(raw []byte, dst [][]byte, names ...string) bool {
	m, ok := walkObject(raw)
	if !ok {
		return false
	}
	for key, val, ok := m.next(); ok; key, val, ok = m.next() {
		for k, name := range names {
			if string(key) == name {
				dst[k] = val
			}
		}
	}
	return true
}

// scanObject is pick for a whole text that is not validated yet: it validates
// and picks in one pass. object is false when the text is another kind of value.
func scanObject(b []byte, dst [][]byte, names ...string) (object bool, at int, f fault) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		at, f = skipText(b)
		return false, at, f
	}
	i = skipSpace(b, i+1)
	more := true
	if i < len(b) && b[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := skipKey(b, i)
		if f != faultNone {
			return true, v, f
		}
		key := plainKey(b[i+1 : end])
		if i, f = skipValue(b, v, 1); f != faultNone {
			return true, i, f
		}
		for k, name := range names {
			if string(key) == name {
				dst[k] = b[v:i:i]
			}
		}
		if i, more, f = nextMember(b, i); f != faultNone {
			return true, i, f
		}
	}
	if i = skipSpace(b, i); i != len(b) {
		return true, i, faultTrailing
	}
	return true, i, faultNone
}
