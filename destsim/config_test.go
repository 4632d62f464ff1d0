package destsim

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestConfigErrors(t *testing.T) {
	object := func(change func(*ObjectConfig)) Config {
		o := entity("o", []string{"upsert"}, "id! string", "f date")
		change(&o)
		return Config{Objects: []ObjectConfig{entity("first", []string{"upsert"}, "id! string"), o}}
	}
	minus := -1
	for name, c := range map[string]struct {
		config Config
		text   string
	}{
		"preset":        {Config{Preset: "defualt"}, `preset: unknown preset "defualt" (did you mean "default"?)`},
		"compress":      {Config{Compress: "gzipp"}, `compress: unknown value "gzipp" (did you mean "gzip"?)`},
		"skip":          {Config{SkipConvention: "sucess"}, `skip_convention: unknown value "sucess" (did you mean "success"?)`},
		"store":         {Config{Store: "memroy"}, `store: unknown value "memroy" (did you mean "memory"?)`},
		"store URL":     {Config{Store: "mysql://u:SECRET@h/d"}, `store: unknown kind of store: use memory or sqlite:FILE`},
		"store file":    {Config{Store: "sqlite:"}, `store: sqlite needs a file: sqlite:FILE`},
		"speed":         {Config{Speed: rpc.Speed{MaximumBatchSize: -5}}, `speed.maximum_batch_size: must be 1 or more, not -5`},
		"secret both":   {Config{URLSecret: URLSecret{Query: "a", Path: &minus}}, `url_secret: set query or path, not both`},
		"secret value":  {Config{URLSecret: URLSecret{Query: "a"}}, `url_secret.value: must not be empty`},
		"secret place":  {Config{URLSecret: URLSecret{Value: "a"}}, `url_secret: value without a place; set query or path`},
		"secret path":   {Config{URLSecret: URLSecret{Path: &minus, Value: "a"}}, `url_secret.path: must be 0 or more, not -1`},
		"header":        {Config{Headers: map[string]string{"X-%d\r\n": "1"}}, `headers["X-%d\r\n"]: not a valid header name and value`},
		"violation":     {Config{Violate: []string{"RES-002", "RES-02"}}, `violate[1]: no violation "RES-02" (did you mean "RES-0`},
		"object name":   {object(func(o *ObjectConfig) { o.Name = "" }), `objects[1].name: must not be empty`},
		"object twice":  {object(func(o *ObjectConfig) { o.Name = "first" }), `objects[1].name: object "first" occurs twice`},
		"operation":     {object(func(o *ObjectConfig) { o.Operations = []string{"upsert", "upset"} }), `objects[1].operations[1]: unknown operation "upset" (did you mean "upsert"?)`},
		"delete":        {object(func(o *ObjectConfig) { o.Operations[0] = "delete" }), `objects[1].operations[0]: "delete" is never advertised; "mirror" implies it`},
		"no operation":  {object(func(o *ObjectConfig) { o.Operations = nil }), `objects[1].operations: must name at least one of`},
		"no identifier": {object(func(o *ObjectConfig) { o.Fields[0].Identifier = false }), `objects[1].fields: at least one field must be an identifier`},
		"field type":    {object(func(o *ObjectConfig) { o.Fields[1].Type = "datetime" }), `objects[1].fields[1].type: unknown type "datetime" (did you mean "date_time"?)`},
		"field twice":   {object(func(o *ObjectConfig) { o.Fields[1].Name = "id" }), `objects[1].fields[1].name: field "id" occurs twice`},
		"date key":      {object(func(o *ObjectConfig) { o.Fields[1].Identifier = true }), `objects[1].fields[1].type: an identifier must be string or integer, not date`},
		"array key":     {object(func(o *ObjectConfig) { o.Fields[0].Array = true }), `objects[1].fields[0].array: an identifier must not be an array`},
		"length":        {object(func(o *ObjectConfig) { o.Fields[1].MaxLength = 3 }), `objects[1].fields[1].max_length: only for string, not date`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.config)
			require.ErrorContains(t, err, c.text)
		})
	}
	_, err := New(Config{Compress: "x", Store: "y"})
	require.ErrorContains(t, err, "compress: ")
	require.ErrorContains(t, err, "store: ", "everything that is wrong is said at once")
}

func TestPresets(t *testing.T) {
	require.Equal(t, []string{"catalogue", "crm", "default", "events", "type-boolean", "type-date", "type-date_time", "type-decimal", "type-float", "type-integer", "type-string"}, Presets())
	for _, name := range Presets() {
		s := newSim(t, Config{Preset: name})
		for _, o := range s.catalogue.Load().objects {
			for _, f := range o.fields {
				// spec 4.2: an identifier is unique and required in both systems.
				require.Equal(t, f.Identifier, f.unique, "%s: %s.%s", name, o.APIName, f.APIName)
				require.True(t, !f.Identifier || f.Required && !f.Array, "%s: %s.%s", name, o.APIName, f.APIName)
			}
		}
	}
	require.Len(t, newSim(t, Config{Preset: "catalogue"}).catalogue.Load().objects, 10)
	own := newSim(t, Config{Preset: "crm", Speed: rpc.Speed{MaximumBatchSize: 7}, RateLimit: -1})
	require.Equal(t, rpc.Speed{MaximumBatchSize: 7, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1000000}, *own.speed.Load())
	require.Zero(t, own.rateLimit.Load())
}

func newTestCertificates(t *testing.T, hosts ...string) (*Certificates, *x509.CertPool) {
	t.Helper()
	certificates, err := NewCertificates(nil, hosts...)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificates.CAPEM()))
	return certificates, roots
}

func TestAGoodCertificateServesEveryHost(t *testing.T) {
	certificates, roots := newTestCertificates(t, "dest.example", "10.1.2.3", "", "localhost")
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	chain := config.Certificates[0].Certificate
	require.Len(t, chain, 2, "leaf and intermediate")
	leaf, err := x509.ParseCertificate(chain[0])
	require.NoError(t, err)
	intermediate, err := x509.ParseCertificate(chain[1])
	require.NoError(t, err)
	verify := func(host string, roots *x509.CertPool) error {
		between := x509.NewCertPool()
		between.AddCert(intermediate)
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between})
		return err
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "dest.example", "10.1.2.3"} {
		require.NoError(t, verify(host, roots), host)
	}
	require.ErrorAs(t, verify("other.example", roots), new(x509.HostnameError))
	require.ErrorAs(t, verify("localhost", x509.NewCertPool()), new(x509.UnknownAuthorityError))
}

func TestCertificatesFollowTheGivenClock(t *testing.T) {
	now := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	certificates, err := NewCertificates(func() time.Time { return now })
	require.NoError(t, err)
	config, err := certificates.TLSConfig("TLS-009")
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	require.NoError(t, err)
	require.Equal(t, now.Add(3*day), leaf.NotAfter)
}

func TestUnknownBadCertificate(t *testing.T) {
	certificates, _ := newTestCertificates(t)
	_, err := certificates.TLSConfig("TLS-099")
	require.ErrorContains(t, err, `no bad certificate "TLS-099" (did you mean "TLS-009"?)`)
}
