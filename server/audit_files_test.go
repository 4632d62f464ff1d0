package server

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/audit"
)

// TestAuditOfFiles: rows of a file are told by their content and counted, when
// they are appended and when the file is replaced.
func TestAuditOfFiles(t *testing.T) {
	for _, format := range []string{"csv", "jsonl"} {
		for operation, strategy := range map[string]any{"append": nil, "mirror": "upload_and_swap"} {
			t.Run(format+" "+operation, func(t *testing.T) {
				briefly(t, "csv append")
				w := newSyncWorld(t)
				dir := t.TempDir()
				file := filepath.Join(dir, "records."+format)
				made := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{
					"name": "Files", "type": "local_files", "credentials": map[string]any{"path": dir, "format": format},
				}}).want(201)
				body := map[string]any{
					"destination_attributes": map[string]any{"connection_id": made.id("data.id"), "object": "records"},
					"operation":              operation, "mappings": []any{column("name", "name", false), column("age", "age", false), column("email", "email", false)},
				}
				if strategy != nil {
					body["mirror_strategy"] = strategy
				}
				w.changeSource(`INSERT INTO customers (id, name, age) VALUES (2, 'Ada', 36), (3, 'Twin', 7), (4, 'Twin', 7), (5, 'A, "quoted" one', NULL)`)
				id := w.kept(body).id("data.id")
				own := func() *audit.Report { return w.audits(id, map[string]any{"readback": nil}) }
				run := w.runsThrough(id)
				require.Equal(t, "completed", run.at("data.status"), string(run.text))
				clean := own()
				require.True(t, clean.Clean, "%+v", clean.Findings)
				require.Equal(t, audit.Checked{Source: 5, Ledger: 5, Destination: 5, Runs: 1}, clean.Checked)
				w.changeSource(`INSERT INTO customers (id, name) VALUES (9, 'New')`)
				w.changeSource(`DELETE FROM customers WHERE id = 3`)
				w.runsThrough(id)
				clean = own()
				require.True(t, clean.Clean, "%+v", clean.Findings)

				text := contentOf(t, file)
				if format == "csv" {
					require.NoError(t, os.WriteFile(file, append(bytes.Clone(text), "\"torn"...), 0o600))
				} else {
					require.NoError(t, os.WriteFile(file, append([]byte("no JSON\n"), text...), 0o600))
				}
				broken := w.control("POST", "/audit", map[string]any{"sync_id": id}).want(409)
				require.Contains(t, broken.at("message"), "records."+format)
				for kind, edit := range map[string]func([]byte) []byte{
					audit.Lost:    func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] },
					audit.Foreign: func(text []byte) []byte { return append(bytes.Clone(text), foreignLine[format]...) },
					audit.Duplicate: func(text []byte) []byte {
						return append(bytes.Clone(text), text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]...)
					},
				} {
					require.NoError(t, os.WriteFile(file, edit(text), 0o600))
					found := own()
					require.Equal(t, map[string]int64{kind: 1}, found.Totals, "%+v", found.Findings)
					require.Equal(t, kind == audit.Foreign && strategy == nil, found.Clean, kind)
				}
			})
		}
	}
}

var foreignLine = map[string]string{"csv": "Stranger,1,\n", "jsonl": "{\"name\":\"Stranger\",\"age\":1}\n"}
