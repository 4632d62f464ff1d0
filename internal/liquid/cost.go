package liquid

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"
)

// What a filter makes is counted before it is made: a text that is replaced ten
// times over is gone before its length is known otherwise. The numbers are upper
// bounds; exact ones where a template would notice.

const (
	itemCost = 64 // bytes that a filter takes for each item of an array or a map
	heavyAt  = 4 << 20
	heavies  = 2 // renderings of more than heavyAt at once, over the whole process
	often    = 256
)

// heavy makes large renderings wait for each other: each is short, and together
// they would take the memory of all.
var heavy = semaphore.NewWeighted(heavies)

// make accounts for a text that the rendering is about to make.
func (r *run) make(size int) error {
	if size > r.limits.Text {
		return fmt.Errorf("%w: a value of more than %d bytes", errLimit, r.limits.Text)
	}
	return r.take(size)
}

// take accounts for memory of any use.
func (r *run) take(size int) error {
	if size > r.limits.Memory-r.made {
		return fmt.Errorf("%w: values of more than %d bytes together", errLimit, r.limits.Memory)
	}
	r.made += size
	if r.made > heavyAt && !r.heavy {
		if err := heavy.Acquire(r.context(), 1); err != nil {
			return errCancelled(r.context())
		}
		r.heavy = true
	}
	return nil
}

// close lets the next large rendering begin.
func (r *run) close() {
	if r.heavy {
		r.heavy = false
		heavy.Release(1)
	}
}

// context ends the rendering.
func (r *run) context() context.Context {
	if r.limits.Context == nil {
		return context.Background()
	}
	return r.limits.Context
}

// errCancelled is of no mistake of the template.
func errCancelled(ctx context.Context) error {
	return fmt.Errorf("render template: %w", context.Cause(ctx))
}

// alive asks now and then whether anybody still waits for the result.
func (r *run) alive() error {
	if r.limits.Context == nil || r.steps%often != 0 {
		return nil
	}
	if r.limits.Context.Err() != nil {
		return errCancelled(r.limits.Context)
	}
	return nil
}

// prepare accounts for what a filter is about to make.
func (r *run) prepare(name string, input any, args []any) error {
	if size := smallTexts(input, args); size >= 0 && size < small && name != "date" && name != "replace" && name != "split" {
		return r.take(6*size + itemCost) // most templates know nothing else
	}
	for _, arg := range args {
		if isList(arg) { // most filters write it out as a text
			if err := r.make(textSize(arg, r.limits.Text)); err != nil {
				return err
			}
		}
	}
	if !isList(input) {
		text, _ := input.(string)
		return r.make(r.textResult(name, textSize(input, r.limits.Text), text, args))
	}
	items := countItems(input, r.limits.Memory)
	if err := r.take(saturated(0, items, itemCost, r.limits.Memory)); err != nil {
		return err
	}
	if r.work += textSize(input, r.limits.Work); r.work > r.limits.Work {
		return fmt.Errorf("%w: more than %d bytes of work", errLimit, r.limits.Work)
	}
	return r.make(r.listResult(name, items, input, args))
}

// small texts need no closer look: no filter but the three named makes more than six
// times as much of them.
const small = 1 << 10

// smallTexts is the length of texts; -1 where one is none.
func smallTexts(input any, args []any) int {
	text, ok := input.(string)
	if !ok {
		return -1
	}
	size := len(text)
	for _, arg := range args {
		if text, ok = arg.(string); !ok {
			return -1
		}
		size += len(text)
	}
	return size
}

// listResult is the most that a filter makes of a list, beside other lists.
func (r *run) listResult(name string, items int, input any, args []any) int {
	most := r.limits.Text
	switch name {
	case "join":
		return saturated(textSize(input, most), items, textSize(argument(args, 0, " "), most), most)
	case "concat", "first", "last", "size", "default", "map", "sort", "reverse", "compact", "where", "reject", "find", "find_index",
		"has", "slice", "except", "only", "keys":
		return itemCost
	}
	return r.textResult(name, textSize(input, most), "", args)
}

// textResult is the most that a filter makes of a text of a length; text is "" where
// only its length is known.
func (r *run) textResult(name string, size int, text string, args []any) int {
	most := r.limits.Text
	arg := func(n int) int { return textSize(argument(args, n, nil), most) }
	switch name {
	case "append", "prepend", "truncatewords", "replace_last":
		return size + arg(0) + arg(1)
	case "truncate":
		return widened(size, text) + arg(1)
	case "slice":
		return widened(size, text)
	case "replace", "replace_first":
		return replaced(size, text, args, name == "replace", most)
	case "split":
		return size + 3*16*(1+pieces(size, text, toShort(argument(args, 0, ""))))
	case "escape", "h", "escape_once":
		return size + 5*countAny(size, text, `&<>"'`)
	case "newline_to_br":
		return size + 6*countAny(size, text, "\n")
	case "url_encode", "upcase", "capitalize", "downcase":
		if name != "url_encode" && text != "" && isASCII(text) {
			return size
		}
		return 3 * size
	case "base64", "base64_encode", "base64_url_safe_encode":
		return size/3*4 + 4
	case "json":
		return 6 * size
	case "date":
		return size + dateSize(toShort(argument(args, 0, "")), arg(0))
	case "default", "sha256", "size":
		return itemCost
	}
	return size
}

// widened is a text with four bytes for each character.
func widened(size int, text string) int {
	if text != "" {
		return size + 4*utf8.RuneCountInString(text)
	}
	return 5 * size
}

// replaced is the length of a text in which finds are replaced.
func replaced(size int, text string, args []any, all bool, most int) int {
	find, by := argument(args, 0, nil), argument(args, 1, "")
	one := textSize(by, most)
	// \0 in the replacement stands for the find.
	if by, ok := by.(string); ok {
		one = saturated(one, strings.Count(by, `\`), textSize(find, most), most)
	}
	count := size + 1
	switch {
	case !all:
		count = 1
	case text != "" && !isList(find):
		count = strings.Count(text, toText(find))
	}
	return saturated(size, count, one, most)
}

// saturated is size + count*each, or anything above most where it is more than
// that: the product may not fit an integer.
func saturated(size, count, each, most int) int {
	if each > 0 && count > most/each {
		return most + 1
	}
	return size + count*each
}

// pieces is how many pieces a text is cut into at the most.
func pieces(size int, text, pattern string) int {
	if text == "" || pattern == "" || pattern == " " {
		return size
	}
	return strings.Count(text, pattern)
}

// countAny counts characters in a text, or takes all for them where the text is not
// known.
func countAny(size int, text, chars string) (n int) {
	if text == "" {
		return size
	}
	for i := range len(chars) {
		n += strings.Count(text, chars[i:i+1])
	}
	return n
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// dateSize: a directive may ask for a width, and each prints some 30 characters
// without one.
func dateSize(format string, size int) int {
	total, width := size, 0
	for i := range len(format) {
		switch c := format[i]; {
		case isDigit(c):
			width = min(10*width+int(c-'0'), 1<<30)
		default:
			total, width = total+width, 0
			if c == '%' {
				total += 32
			}
		}
	}
	return total + width
}

// isList is a value of which filters make arrays.
func isList(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// countItems counts items at any depth, up to a number.
func countItems(value any, most int) int {
	left := most
	walkItems(value, &left)
	return most - left
}

func walkItems(value any, left *int) {
	switch v := value.(type) {
	case []any:
		*left -= len(v)
		for i := 0; i < len(v) && *left > 0; i++ {
			if isList(v[i]) {
				walkItems(v[i], left)
			}
		}
	case map[string]any:
		*left -= len(v)
		for _, item := range v {
			if *left <= 0 {
				return
			}
			if isList(item) {
				walkItems(item, left)
			}
		}
	default:
		*left--
	}
}

// textSize is the most that the text of a value takes, in whatever notation; it
// stops above a number.
func textSize(value any, most int) int {
	if text, ok := value.(string); ok {
		return len(text)
	}
	left := most
	walkText(value, &left)
	return most - left
}

func walkText(value any, left *int) {
	switch v := value.(type) {
	case nil, bool, int64, float64, time.Time, intRange:
		*left -= 48
	case string:
		*left -= quotedSize(v, *left)
	case rawText:
		*left -= quotedSize(string(v), *left)
	case decimal:
		*left -= len(v)
	case []byte:
		*left -= 6 * len(v)
	case *big.Int:
		*left -= v.BitLen()/3 + 2
	case []any:
		*left -= 2
		for i := 0; i < len(v) && *left >= 0; i++ {
			*left -= 2
			walkText(v[i], left)
		}
	case map[string]any:
		*left -= 2
		for key, item := range v {
			if *left < 0 {
				return
			}
			*left -= 4 + quotedSize(key, *left)
			walkText(item, left)
		}
	default:
		*left -= 64
	}
}

// quotedSize is the most that a text takes in quotes, with its escapes.
func quotedSize(s string, most int) int {
	if len(s) > most {
		return len(s) + 2
	}
	size := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= 0x7f:
			size += 5
		case c == '"', c == '\\', c == '#':
			size++
		}
	}
	return size
}

// shortText bounds what an argument is read by before its filter runs, and what
// messages show of values.
const shortText = 4 << 10

// toShort is the text of a value, or the beginning of it where it is long.
func toShort(value any) string {
	if text, ok := value.(string); ok {
		if len(text) > 64*shortText {
			return text[:64*shortText]
		}
		return text
	}
	if textSize(value, shortText) > shortText {
		return "…"
	}
	return toText(value)
}

// shown is the text of a value in a message.
func shown(value any) string {
	text := toShort(value)
	if len(text) > 256 {
		return strings.ToValidUTF8(text[:256], "") + "…"
	}
	return text
}
