package conformance

import (
	"encoding/base64"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// BodyFiles are the files that the command of a finding names, by their path from the
// folder of the run, with the secrets taken out.
func (f Finding) BodyFiles() map[string][]byte {
	files := map[string][]byte{}
	for _, x := range f.Exchanges {
		name := wire.CurlBodyFile(x)
		if name == "" || !strings.Contains(f.Curl, name) {
			continue
		}
		body := []byte(x.Request.Body.Text)
		if x.Request.Body.Base64 != "" {
			binary, err := base64.StdEncoding.DecodeString(x.Request.Body.Base64)
			if err != nil {
				continue
			}
			body = binary
		}
		files[name] = body
	}
	return files
}
