package loadgen

import "bytes"

// learn takes the form of a reply in which every record was acknowledged, in
// the order of the batch and with the very bytes of its identifier. The reply
// has been validated, and a piece begins and ends where a token does: other
// identifiers of the same kind between the same pieces are valid, too.
func (c *checker) learn(body []byte) {
	e, b := c.first, c.b
	if e.End == 0 || e.IdentifierAt == 0 {
		return
	}
	f := &c.form
	f.known = false
	f.before = append(f.before[:0], body[e.Start:e.IdentifierAt]...)
	f.after = append(f.after[:0], body[e.IdentifierAt+len(e.Identifier):e.End]...)
	if bytes.Contains(f.after, e.Identifier) || bytes.Contains(f.before, e.Identifier) {
		return // the entry repeats it elsewhere: it is not the same every time
	}
	length := len(f.before) + len(f.after) + len(b.key(0))
	end, n := e.Start+length, b.size()
	f.single = n == 1
	f.between = f.between[:0]
	if n > 1 {
		// The second entry shows what stands between two.
		at := bytes.IndexByte(body[end:], '{')
		if at < 0 {
			return
		}
		f.between = append(f.between, body[end:end+at]...)
		for i := 1; i < n; i++ {
			end += len(f.between) + len(f.before) + len(b.key(i)) + len(f.after)
		}
	}
	if end > len(body) {
		return
	}
	f.head = append(f.head[:0], body[:e.Start]...)
	f.tail = append(f.tail[:0], body[end:]...)
	f.idInHead, f.idInTail = -1, -1
	if at := c.answer.IDAt; at < e.Start {
		f.idInHead = at
	} else {
		f.idInTail = at - end
	}
	if f.idInHead < 0 && (f.idInTail < 0 || f.idInTail+idDigits+2 > len(f.tail)) {
		return
	}
	f.known = true
	// The form must give this very reply: entries may differ in their white space
	// or their further members.
	_, f.known = c.same(b, body)
}
