package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/liquid"
	"github.com/destkit/destkit/server/api"
)

// Sources of a mapping: spec 2.7 and published behaviour.
var fromTypes = []string{
	api.FromColumn, api.FromConstant, api.FromLiquid, api.FromSyncMetadata, api.FromSegmentMembership, api.FromCompoundKey,
}

// Metadata that a mapping of type sync_metadata can name (published facts shows the
// first).
const (
	MetadataRunID  = "sync_run_id"
	MetadataSyncID = "sync_id"
)

// checkFrom: the type of a mapping's source decides the shape of its data (spec
// 2.7). It gives the kind of the values, KindAny where they decide.
func (c *checker) checkFrom(at string, from *api.MappingFrom) api.Kind {
	if !c.oneOf(at+".type", from.Type, fromTypes...) {
		return api.KindAny
	}
	if len(bytes.TrimSpace(from.Data)) == 0 || string(bytes.TrimSpace(from.Data)) == "null" {
		c.bad(at+".data", "is required beside type %s: %s", from.Type, dataShape[from.Type])
		return api.KindAny
	}
	switch from.Type {
	case api.FromColumn:
		return c.checkFromColumn(at+".data", from.Data)
	case api.FromConstant:
		return c.checkConstant(at+".data", from.Data)
	case api.FromLiquid:
		c.checkTemplate(at+".data", from.Data)
	case api.FromSyncMetadata:
		var name string
		if json.Unmarshal(from.Data, &name) != nil {
			c.bad(at+".data", "must be %s", dataShape[from.Type])
		} else if c.oneOf(at+".data", name, MetadataRunID, MetadataSyncID) {
			return api.KindInteger
		}
	case api.FromSegmentMembership:
		c.checkMembership(at+".data", from.Data)
	default:
		c.bad(at+".type", "compound_key is made by the service only: map a column, or join columns with a liquid_template")
	}
	return api.KindAny
}

// dataShape words for each type what its data must be.
var dataShape = map[string]string{
	api.FromColumn:            "a string, the name of a column",
	api.FromConstant:          `an object {"value", "basic_type"}`,
	api.FromLiquid:            `an object {"liquid_template": "…"}`,
	api.FromSyncMetadata:      "a string, sync_run_id or sync_id",
	api.FromSegmentMembership: `an object {"identify_by": "name"}`,
	api.FromCompoundKey:       "nothing that a client could send",
}

// checkFromColumn gives the kind of the column, by which the fit with the field
// is judged.
func (c *checker) checkFromColumn(at string, data json.RawMessage) api.Kind {
	var name string
	if json.Unmarshal(data, &name) != nil || name == "" {
		c.bad(at, "must be %s", dataShape[api.FromColumn])
		return api.KindAny
	}
	if column := c.column(at, name); column != nil && column.Kind != "" {
		return column.Kind
	}
	return api.KindAny
}

// decodeStrictly refuses keys that the target does not have, and what follows
// the first value.
func decodeStrictly(data json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// checkConstant checks both the type that the payload claims and that the value
// is of it.
func (c *checker) checkConstant(at string, data json.RawMessage) api.Kind {
	var constant api.Constant
	if err := decodeStrictly(data, &constant); err != nil {
		c.bad(at, "must be %s", dataShape[api.FromConstant])
		return api.KindAny
	}
	if !c.oneOf(at+".basic_type", constant.BasicType, "boolean", "date_time", "datetime", "number", "text") {
		return api.KindAny
	}
	value := bytes.TrimSpace(constant.Value)
	if len(value) == 0 || string(value) == "null" {
		c.bad(at+".value", "is required: a %s", constant.BasicType)
		return api.KindAny
	}
	kind, ok := constantKind(constant.BasicType, value)
	if !ok {
		c.bad(at+".value", "is not a %s: %s", constant.BasicType, constantShape[constant.BasicType])
	}
	return kind
}

// constantShape words how each type is written.
var constantShape = map[string]string{
	"boolean":   "write true or false, without quotes",
	"number":    "write a number, without quotes",
	"text":      "write a string",
	"date_time": `write a string such as "2021-03-29T16:32:23Z" or "2021-03-29"`,
	"datetime":  `write a string such as "2021-03-29T16:32:23Z" or "2021-03-29"`,
}

// constantKind is the kind of a constant's value, and whether it matches its
// basic type.
func constantKind(basicType string, value []byte) (api.Kind, bool) {
	var s string
	isString := json.Unmarshal(value, &s) == nil && value[0] == '"'
	switch basicType {
	case "boolean":
		return api.KindBoolean, string(value) == "true" || string(value) == "false"
	case "number":
		isNumber := value[0] == '-' || value[0] >= '0' && value[0] <= '9'
		// By the notation: 2.0 is meant as a decimal.
		if bytes.ContainsAny(value, ".eE") {
			return api.KindDecimal, isNumber
		}
		return api.KindInteger, isNumber
	case "text":
		return api.KindString, isString
	}
	if _, err := time.Parse(time.DateOnly, s); err == nil {
		return api.KindDate, isString
	}
	_, err := time.Parse(time.RFC3339Nano, strings.Replace(s, " ", "T", 1))
	return api.KindDateTime, isString && err == nil
}

// templateText reads the data of a liquid_template in both published forms.
func templateText(data json.RawMessage) (string, error) {
	var bare string
	if json.Unmarshal(data, &bare) == nil {
		return bare, nil
	}
	var template struct {
		Text *string `json:"liquid_template"`
	}
	if err := decodeStrictly(data, &template); err != nil {
		return "", err
	}
	if template.Text == nil {
		return "", errors.New("no liquid_template")
	}
	return *template.Text, nil
}

// checkTemplate: a template parses strictly and reads only columns that exist. The
// published texts of both errors are kept.
func (c *checker) checkTemplate(at string, data json.RawMessage) {
	source, err := templateText(data)
	if err != nil {
		c.bad(at, "must be %s", dataShape[api.FromLiquid])
		return
	}
	template, err := liquid.Parse(source)
	if err != nil {
		c.bad(at, "%v%s", err, lineOf(source, err))
		return
	}
	if !c.ColumnsKnown {
		return
	}
	// Only where the columns are known: a source that is down would make every
	// template wrong.
	names := make([]string, len(c.Columns))
	for i := range c.Columns {
		names[i] = c.Columns[i].Name
	}
	for _, column := range template.Columns() {
		if !slices.Contains(names, column) {
			c.bad(at, "%v%s", liquid.UnknownColumn(foreign.Clip(column, 80)), didYouMean(column, names))
		}
	}
}

// lineOf names the line of a mistake in a template of several lines, after the
// published text, which names none.
func lineOf(source string, err error) string {
	var mistake *liquid.Error
	if !errors.As(err, &mistake) || !strings.Contains(source, "\n") {
		return ""
	}
	return fmt.Sprintf(" (line %d of the template)", mistake.Line)
}

// checkMembership: segments are named; no other way is published.
func (c *checker) checkMembership(at string, data json.RawMessage) {
	var membership struct {
		IdentifyBy string `json:"identify_by"`
	}
	if err := decodeStrictly(data, &membership); err != nil {
		c.bad(at, "must be %s", dataShape[api.FromSegmentMembership])
		return
	}
	c.oneOf(at+".identify_by", membership.IdentifyBy, identifyByName)
	if kind := c.config.SourceAttributes.Object.Type; kind != api.ObjectDataset && !slices.Contains(internalSources, kind) {
		c.bad(at, "needs a dataset, whose segments it writes, and a %s has none: read a dataset, or map something else", kind)
	}
}
