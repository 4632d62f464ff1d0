package destsim

import (
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// The results of the planning methods; get_sync_speed answers
// rpc.Speed.
type (
	connectionResult struct {
		Success      bool   `json:"success"`
		ErrorMessage string `json:"error_message,omitempty"`
	}
	objectsResult struct {
		Objects []rpc.Object `json:"objects"`
	}
	fieldsResult struct {
		Fields []rpc.Field `json:"fields"`
	}
	operationsResult struct {
		Operations []string `json:"operations"`
	}
)

// downstreamDown is what a user reads while the downstream system is broken.
const downstreamDown = "the downstream system is unavailable"

// planning answers the five small methods. Members of params that are not
// known are ignored.
func (c *call) planning() (any, *rpc.Error) {
	s := c.sim
	switch c.method {
	case rpc.MethodTestConnection:
		if s.broken.Load() {
			return connectionResult{ErrorMessage: downstreamDown}, nil
		}
		return connectionResult{Success: true}, nil
	case rpc.MethodListObjects:
		list := []rpc.Object{}
		for _, o := range s.catalogue.Load().objects {
			list = append(list, o.Object)
		}
		return objectsResult{list}, nil
	case rpc.MethodGetSyncSpeed:
		return *s.speed.Load(), nil
	case rpc.MethodListFields:
		o, err := c.objectParam()
		if err != nil {
			return nil, err
		}
		return fieldsResult{o.list()}, nil
	case rpc.MethodSupportedOperations:
		o, err := c.objectParam()
		if err != nil {
			return nil, err
		}
		return operationsResult{append([]string{}, o.operations...)}, nil
	}
	return nil, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", clip(c.method))}
}

// objectParam resolves params.object.object_api_name; a label is not needed,
// since only the name is permanent.
func (c *call) objectParam() (*object, *rpc.Error) {
	name, problem := objectName(c.params)
	if problem == "" {
		c.object = name
		if o := c.sim.catalogue.Load().byName[name]; o != nil {
			return o, nil
		}
		problem = fmt.Sprintf("unknown object %q", clip(name))
	}
	return nil, &rpc.Error{Code: rpc.CodeInvalidParams, Message: "invalid params: " + problem}
}

// objectName reads params.object.object_api_name, or says what is wrong.
// Decoding into maps keeps member names exact.
func objectName(params []byte) (name, problem string) {
	var top, ref map[string]json.RawMessage
	if err := json.Unmarshal(params, &top); err != nil || top["object"] == nil {
		return "", "object is missing"
	}
	if err := json.Unmarshal(top["object"], &ref); err != nil || ref == nil {
		return "", "object must be an object"
	}
	if raw := ref["object_api_name"]; len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &name) == nil {
		return name, ""
	}
	return "", "object.object_api_name must be a string"
}

// clip shortens foreign text for a message.
func clip(text string) string { return foreign.Clip(text, 64) }
