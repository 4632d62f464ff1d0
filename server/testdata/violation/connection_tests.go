package violation

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// testSteps changes every step of a shown connection test.
func testSteps(change func(step map[string]any)) func(map[string]any) {
	return func(d map[string]any) {
		results, _ := d["last_test_results"].(map[string]any)
		steps, _ := results["steps"].([]any)
		for _, one := range steps {
			if step, ok := one.(map[string]any); ok {
				change(step)
			}
		}
	}
}

// showsTest changes what is shown of tests, wherever destinations are shown.
func showsTest(id, changes string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is(makesDestination) || a.Is(fetchesDestination) || a.Is(listsDestinations) || a.Is(savesDestination) {
			a.Data(change)
		}
	}})
}

// answersTest changes what endpoints answer to test_connection.
func answersTest(id, changes string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if o.Method != rpc.MethodTestConnection {
			return resp, err
		}
		return exchange.Rewrite(resp, err, change)
	}})
}

// destinationTests break connection tests and what is shown of them (spec 3, 7.1.3).
func destinationTests() []violation {
	return []violation{
		showsAt("DST-013", "a fetched destination never has a test that succeeded", fetchesDestination, func(d map[string]any) {
			d["last_test_succeeded"] = false
		}).also("DST-019", "a fetch shows whether the latest test succeeded"),
		showsTest("DST-015", "failed steps say only that they failed", testSteps(func(step map[string]any) {
			if step["error"] != nil {
				step["error"] = map[string]any{"message": "failed"}
			}
		})).also("DST-016", "the message of an error is gone too"),
		showsAt("DST-015.2", "a fetched destination shows the message of a failed step beside error", fetchesDestination, testSteps(func(step map[string]any) {
			if failure, ok := step["error"].(map[string]any); ok {
				step["message"], step["error"] = failure["message"], nil
			}
		})).also("DST-016", "the message of an error is moved too"),
		answersTest("DST-016", "the message of an error object is lost", func(body map[string]any) {
			if failure, ok := body["error"].(map[string]any); ok {
				failure["message"] = "unknown error"
			}
		}),
		breaks("DST-017", "a test that is answered with an error of HTTP counts as passed", seams{
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				resp, err := next(o)
				if o.Method == rpc.MethodTestConnection && err == nil && resp.StatusCode >= 500 {
					return healthyTest(o, resp)
				}
				return resp, err
			},
		}),
		showsTest("DST-017.2", "a test that got no answer has no steps", func(d map[string]any) {
			results, _ := d["last_test_results"].(map[string]any)
			if steps, _ := results["steps"].([]any); len(steps) > 3 && d["last_test_succeeded"] == false {
				if step, ok := steps[3].(map[string]any); ok && step["status"] == "skipped" {
					results["steps"] = []any{}
				}
			}
		}),
		violation{Violation{ID: "DST-018", Changes: "an endpoint is tested once; later tests have the same result"}, testsOnce}.
			also("DST-008", "the test after the change is looked for").
			also("DST-017", "later failures are not seen").
			also("DST-019", "the first result stays"),
		showsAt("DST-019", "a fetched destination whose test succeeded shows the steps of a failure", fetchesDestination, func(d map[string]any) {
			if d["last_test_succeeded"] == true {
				testSteps(func(step map[string]any) { step["error"] = map[string]any{"message": "the endpoint did not answer"} })(d)
			}
		}),
	}
}

// healthyTest answers in place of the endpoint.
func healthyTest(o *exchange.Call, resp *http.Response) (*http.Response, error) {
	var call struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(o.Body, &call)
	_ = resp.Body.Close()
	body := `{"jsonrpc":"2.0","id":` + string(call.ID) + `,"result":{"success":true}}`
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}

// testsOnce keeps how the first test of an endpoint was answered, and never
// asks again.
func testsOnce(*Service) seams {
	type kept struct {
		resp *http.Response
		body []byte
		err  error
	}
	var lock sync.Mutex
	first := map[string]kept{} // by URL
	return seams{carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != rpc.MethodTestConnection {
			return next(o)
		}
		lock.Lock()
		defer lock.Unlock()
		k, tested := first[o.HTTP.URL.String()]
		if !tested {
			k.resp, k.err = next(o)
			if k.err == nil {
				k.body, k.err = io.ReadAll(k.resp.Body)
				_ = k.resp.Body.Close()
			}
			first[o.HTTP.URL.String()] = k
		}
		if k.err != nil {
			return nil, k.err
		}
		again := *k.resp
		again.Header, again.Body = k.resp.Header.Clone(), io.NopCloser(bytes.NewReader(k.body))
		var call struct{ ID any }
		_ = json.Unmarshal(o.Body, &call)
		return exchange.Rewrite(&again, nil, func(body map[string]any) { body["id"] = call.ID })
	}}
}
