package foreign

import "reflect"

// Value replaces every secret in all texts that v points to, in what it holds and
// in what that holds. Fields with the tag `redact:"-"` stay: they are words of the
// program's own, or were redacted before. Lists, maps and pointers are copied, so
// that nothing changes for whoever else holds them.
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
