package connector

import (
	"encoding/json"
	"strings"
)

// Secrets adds a secret value as it stands in JSON and as it reads. Of an object,
// such as the key of a service account, the members with a telling name are
// secrets of their own.
func Secrets(found []string, raw Raw) []string { return appendSecrets(found, raw, true) }

func appendSecrets(found []string, raw Raw, secret bool) []string {
	var members map[string]Raw
	if json.Unmarshal(raw, &members) == nil {
		if secret {
			found = append(found, string(raw))
		}
		for name, value := range members {
			found = appendSecrets(found, value, telling(name))
		}
		return found
	}
	var v string
	if !secret || json.Unmarshal(raw, &v) != nil || v == "" {
		return found
	}
	found = append(found, v)
	if escaped := strings.Trim(string(raw), " \t\r\n"); len(escaped) > 2 && escaped[1:len(escaped)-1] != v {
		found = append(found, escaped[1:len(escaped)-1])
	}
	if json.Valid([]byte(v)) && strings.HasPrefix(strings.TrimSpace(v), "{") {
		found = appendSecrets(found, Raw(v), false)
	}
	return found
}

// telling says that a member of a key file is a secret by its name.
func telling(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "secret", "token", "password"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
