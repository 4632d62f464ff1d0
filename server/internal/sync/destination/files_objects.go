package destination

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

const (
	// defaultFile is offered in every folder, also an empty one.
	defaultFile = "records"
	maxFiles    = 1000
	// maxHead bounds the bytes read of a file to learn its columns.
	maxHead = 1 << 20
)

// FileName is the name of the file of a local_files object.
func FileName(object, format string) string { return object + "." + format }

// Objects lists one object per file of the format, and the object "records"
// for a file that is still to be made. Columns are read from the files.
func (c *filesConnection) Objects(ctx context.Context) ([]*api.DestinationObject, error) {
	root, err := c.folder()
	if err != nil {
		return nil, &CallError{Method: rpc.MethodListObjects, Outcome: OutcomeNetwork, Message: fileProblem(err)}
	}
	defer root.Close()
	names, err := c.files(root)
	if err != nil {
		return nil, &CallError{Method: rpc.MethodListObjects, Outcome: OutcomeNetwork, Message: fileProblem(err)}
	}
	if !slices.Contains(names, defaultFile) {
		names = append([]string{defaultFile}, names...)
	}
	list := make([]*api.DestinationObject, 0, len(names))
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, &CallError{Method: rpc.MethodListFields, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
		}
		list = append(list, c.describe(root, name))
	}
	return list, nil
}

// files lists the regular files of the format without its ending, sorted.
func (c *filesConnection) files(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, found := strings.CutSuffix(e.Name(), "."+c.format)
		if found && name != "" && !strings.HasPrefix(name, ".") && e.Type().IsRegular() && len(names) < maxFiles {
			names = append(names, name)
		}
	}
	return names, nil
}

// describe maps one file. Rows have no identifier: they are added, or the file
// is replaced as a whole.
func (c *filesConnection) describe(root *os.Root, name string) *api.DestinationObject {
	types := everyType()
	if c.format == FormatCSV { // a cell holds one value
		types = slices.DeleteFunc(types, func(t api.CustomFieldType) bool { return t.Array })
	}
	upsert := api.IdentifierRule{HideDestinationKey: true}
	mirror := api.IdentifierRule{
		HideDestinationKey: true,
		Notes:              api.Ptr("A mirror replaces the file: mirror_strategy must be upload_and_swap."),
	}
	d := &api.DestinationObject{
		Label: FileName(name, c.format), FullName: name,
		SupportedOperations:         []string{api.OperationAppend, api.OperationInsert, api.OperationMirror},
		AllowCustomFields:           true,
		SupportedCustomFieldTypes:   &types,
		AllowCaseSensitiveFields:    true,
		AdvancedConfigurationFields: []api.AdvancedField{},
		SupportsFieldOrdering:       c.format == FormatCSV,
		IsAudienceDestination:       api.Ptr(false),
		Fields:                      []api.DestinationField{}, ConfigurableFieldDefinitions: map[string]string{},
	}
	columns, err := c.columns(root, name)
	if err != nil {
		upsert.Notes = api.Ptr(foreign.Clip("This object cannot be written to: "+err.Error(), maxForeign))
		mirror.Notes = upsert.Notes
	}
	d.CanBeSyncDestination = err == nil
	for _, col := range columns {
		d.Fields = append(d.Fields, api.DestinationField{
			Label: col.name, FullName: col.name, Createable: true, Operations: []string{"overwrite"},
			Array: col.array, CanBeInsertKey: !col.array && (col.typ == rpc.TypeString || col.typ == rpc.TypeInteger),
			Type: col.typ,
		})
	}
	d.PrimaryIdentifierMappingAttributes = &api.PrimaryIdentifiers{Upsert: upsert, Mirror: mirror}
	return d
}

// columns reads the beginning of a file; a file that is not there has none.
func (c *filesConnection) columns(root *os.Root, name string) ([]column, error) {
	f, err := root.Open(FileName(name, c.format))
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("open file: %w", err)
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	whole := len(head) < maxHead
	if c.format == FormatCSV {
		return csvColumns(head)
	}
	return jsonColumns(head, whole)
}
