package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Longest is how many characters of one value from outside Printf shows.
const Longest = 4096

// Own is text of the program's own among the values of Printf, or text that was
// cleaned: it is printed as it is, line breaks included.
type Own string

// Printf is fmt.Fprintf for values from outside: every text among args is shown as
// one line of bounded length. The format is the program's own.
func Printf(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, format, Args(args)...)
}

// Println prints one line, whose text may come from outside.
func Println(w io.Writer, args ...any) {
	fmt.Fprintln(w, Args(args)...)
}

// Group prints text as a part that GitHub Actions folds away under its title. No line
// of the text can end the group or give the runner another command.
func Group(w io.Writer, title, text string) error {
	raw := Raw(w)
	if _, err := fmt.Fprintf(raw, "::group::%s\n", Line(title)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(NewWriter(raw, coloured(w)), strings.Trim(text, "\n")); err != nil {
		return err
	}
	_, err := fmt.Fprintln(raw, "::endgroup::")
	return err
}

// coloured reports whether w lets colours pass.
func coloured(w io.Writer) bool {
	net, ok := w.(*Writer)
	return ok && net.colours
}

// Args cleans the values of a format. Errors stay errors where %w needs them: whoever
// prints the whole error cleans it.
func Args(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case Own:
			out[i] = string(v)
		case string:
			out[i] = shown(v)
		case []byte:
			out[i] = shown(string(v))
		case error:
			out[i] = failure{v}
		case []string:
			list := make([]string, len(v))
			for j, s := range v {
				list[j] = shown(s)
			}
			out[i] = list
		case fmt.Formatter:
			out[i] = v
		case fmt.Stringer:
			if out[i] = arg; !numeric(arg) {
				out[i] = shown(v.String())
			}
		default:
			switch value := reflect.ValueOf(arg); {
			case value.Kind() == reflect.String:
				out[i] = shown(value.String())
			case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8:
				out[i] = shown(string(value.Bytes()))
			default:
				out[i] = arg
			}
		}
	}
	return out
}

// numeric reports whether arg is a number with a name, such as a mode of a file: it
// holds no text from outside, and verbs such as %o need the number.
func numeric(arg any) bool {
	kind := reflect.ValueOf(arg).Kind()
	return kind >= reflect.Bool && kind <= reflect.Complex128
}

func shown(s string) string { return Clip(keepEnds(s), Longest) }

// keepEnds is Line with the spaces at both ends: they may be an indentation.
func keepEnds(s string) string { return Defuse(Visible(s, ' ')) }

// failure shows an error on one line.
type failure struct{ error }

func (f failure) Error() string { return shown(f.error.Error()) }
func (f failure) Unwrap() error { return f.error }

// Message is an error for the screen: its first line as it is, further ones
// indented, so that none of them passes for a line of the program's own.
func Message(text string) string {
	return strings.Join(Block(text), "\n  ")
}

// EncodeJSON writes v as one JSON value that is harmless on a screen. HTML escapes
// are off: the reader is a person or a JSON parser.
func EncodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(JSON(b.Bytes()))
	return err
}

// Print writes text that is clean already.
func Print(w io.Writer, text string) {
	_, _ = io.WriteString(w, text) // as with fmt.Fprint: a screen that is gone has no reader
}

// Value replaces every secret in all texts that v points to, at any depth. Fields
// with the tag `redact:"-"` stay: they are words of the program's own, or were
// redacted before. Lists, maps and pointers are copied, so that nothing changes
// for whoever else holds them.
func (r *Redactor) Value(v any) {
	r.mu.RLock()
	none := len(r.secrets) == 0
	r.mu.RUnlock()
	if !none {
		r.value(reflect.ValueOf(v).Elem())
	}
}

func (r *Redactor) value(v reflect.Value) {
	if !v.CanSet() {
		return // not exported: it is not written anywhere
	}
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); text != "" {
			v.SetString(r.String(text))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("redact") != "-" {
				r.value(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			held := reflect.New(v.Type().Elem())
			held.Elem().Set(v.Elem())
			v.Set(held)
			r.value(held.Elem())
		}
	case reflect.Slice:
		r.list(v)
	case reflect.Map:
		r.table(v)
	}
}

func (r *Redactor) list(v reflect.Value) {
	if v.IsNil() {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(r.Bytes(v.Bytes()))
		return
	}
	copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(copied, v)
	v.Set(copied)
	for i := range v.Len() {
		r.value(v.Index(i))
	}
}

func (r *Redactor) table(v reflect.Value) {
	if v.IsNil() {
		return
	}
	copied := reflect.MakeMapWithSize(v.Type(), v.Len())
	for at := v.MapRange(); at.Next(); {
		key, held := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(at.Key())
		held.Set(at.Value())
		r.value(key)
		r.value(held)
		copied.SetMapIndex(key, held)
	}
	v.Set(copied)
}
