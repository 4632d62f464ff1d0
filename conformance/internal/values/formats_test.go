package values

import (
	"encoding/json"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// The shapes that strict endpoints require.
var shapes = map[string]func(text string) bool{
	"email": func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address == s },
	"phone": regexp.MustCompile(`^\+[1-9][0-9]{7,14}$`).MatchString,
	"url": func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != ""
	},
	"host":     regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`).MatchString,
	"uuid":     regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString,
	"country":  regexp.MustCompile(`^[A-Z]{2}$`).MatchString,
	"currency": regexp.MustCompile(`^[A-Z]{3}$`).MatchString,
	"language": regexp.MustCompile(`^[a-z]{2}$`).MatchString,
	"postcode": regexp.MustCompile(`^[1-9][0-9]{4}$`).MatchString,
	"colour":   regexp.MustCompile(`^#[0-9a-f]{6}$`).MatchString,
	"ip":       func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"text":     regexp.MustCompile(`^conf [0-9a-z]+ `).MatchString,
}

func TestFormatsAreGuessedFromNames(t *testing.T) {
	for _, c := range []struct{ name, label, shape string }{
		{"email", "", "email"},
		{"e_mail", "", "email"},
		{"E-Mail", "", "email"},
		{"workEmail", "", "email"},
		{"emailAddress", "", "email"},
		{"billing_email_address", "", "email"},
		{"f17", "Email", "email"},
		{"email_subject", "", "text"},
		{"mail_body", "", "text"},
		{"emailed", "", "text"},
		{"phone", "", "phone"},
		{"Phone number", "", "phone"},
		{"mobilePhone", "", "phone"},
		{"fax", "", "phone"},
		{"f17", "Phone number", "phone"},
		{"telegram", "", "text"},
		{"website", "", "url"},
		{"profile_url", "", "url"},
		{"domain", "", "host"},
		{"uuid", "", "uuid"},
		{"country", "", "country"},
		{"country_code", "", "country"},
		{"billingCountry", "", "country"},
		{"country_name", "", "text"},
		{"currency", "", "currency"},
		{"currency_code", "", "currency"},
		{"language", "", "language"},
		{"postcode", "", "postcode"},
		{"post_code", "", "postcode"},
		{"zip", "", "postcode"},
		{"zipCode", "", "postcode"},
		{"postal_code", "", "postcode"},
		{"zipper", "", "text"},
		{"color", "", "colour"},
		{"ip_address", "", "ip"},
		{"shipping", "", "text"},
		{"last_name", "", "text"},
		{"description", "Email text", "text"},
	} {
		f := rpc.Field{APIName: c.name, Label: c.label, Type: rpc.TypeString}
		values := NewMaker("00ab12")
		for record := range 300 {
			var text string
			require.NoError(t, json.Unmarshal(values.Value(f, NewSeed(3, record), Guess), &text))
			require.True(t, shapes[c.shape](text), "%s %q as %s: %s", c.name, c.label, c.shape, text)
			require.LessOrEqual(t, len(text), 40)
		}
		require.Equal(t, c.shape == "text", Guessed(f) == nil, c.name)
		if c.shape == "email" || c.shape == "url" {
			varied := values.Varied(f, NewSeed(3, 5))
			require.Len(t, varied, 3)
			for _, raw := range varied {
				_, err := url.Parse(Text(raw))
				require.NoError(t, err)
				require.True(t, c.shape != "email" || shapes["email"](Text(raw)), "%s", raw)
			}
		}
	}
}

func TestKeysOfAddressFieldsAreAddresses(t *testing.T) {
	for name, address := range map[string]bool{
		"email": true, "e_mail": true, "Email": true, "workEmail": true, "email_address": true, "mail": true,
		"id": false, "email_id": true, "customer_no": false, "mailbox": false,
	} {
		f := rpc.Field{APIName: name, Type: rpc.TypeString}
		require.Equal(t, address, shapes["email"](FormOfKey(f, "zz-conf-00ab12-SEM-001-1", 0)), name)
		seen := map[string]bool{}
		for form := range KeyForms {
			seen[FormOfKey(f, "zz-conf-00ab12-SEM-001-1", form)] = true
		}
		require.Len(t, seen, KeyForms, "each form is another one")
		require.True(t, shapes["uuid"](FormOfKey(f, "zz-conf-00ab12-SEM-001-1", KeyForms-1)))
	}
}

func TestWordsOfNames(t *testing.T) {
	for name, want := range map[string][]string{
		"last_name":        {"last", "name", "lastname"},
		"billing_postCode": {"billing", "post", "code", "billingpost", "postcode"},
		"E-Mail":           {"e", "mail", "email"},
		"URL":              {"url"},
		"Phone number":     {"phone", "number", "phonenumber"},
		"":                 nil,
		"__":               nil,
	} {
		require.Equal(t, want, Words(name), name)
	}
}
