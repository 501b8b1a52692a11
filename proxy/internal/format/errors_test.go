package format_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// The texts are Envoy 1.40's.
func TestErrors(t *testing.T) {
	for f, want := range map[string]string{
		"%BOGUS%":                               "Not supported field in StreamInfo: BOGUS",
		"%1%":                                   "Not supported field in StreamInfo: 1",
		"%REQ(a":                                "Incorrect configuration: %REQ(a. Couldn't find valid command at position 0",
		"%REQ%":                                 "REQ requires parameters",
		"%REQ()%":                               "REQ requires parameters",
		"%REQ:3%":                               "REQ requires parameters",
		"%REQ(a):x%":                            "Incorrect configuration: %REQ(a):x%. Couldn't find valid command at position 0",
		"%REQ(a):%":                             "Incorrect configuration: %REQ(a):%. Couldn't find valid command at position 0",
		"%REQ(a)x%":                             "Incorrect configuration: %REQ(a)x%. Couldn't find valid command at position 0",
		"%REQ(a):99999999999999999999999%":      "Incorrect configuration: %REQ(a):99999999999999999999999%. Couldn't find valid command at position 0",
		"%REQ(a?b?c)%":                          "More than 1 alternative header specified in token: a?b?c",
		"%REQ(a b)%":                            "Invalid header configuration. Format string contains invalid characters.",
		"%REQ(a))%":                             "Invalid header configuration. Format string contains invalid characters.",
		"%REQ( a)%":                             "Invalid header configuration. Format string contains invalid characters.",
		"%RESP(\x80)%":                          "Invalid header configuration. Format string contains invalid characters.",
		"%req(a)%":                              "Incorrect configuration: %req(a)%. Couldn't find valid command at position 0",
		"%":                                     "Incorrect configuration: %. Couldn't find valid command at position 0",
		"100%":                                  "Incorrect configuration: 100%. Couldn't find valid command at position 3",
		"%%%":                                   "Incorrect configuration: %%%. Couldn't find valid command at position 2",
		"%REQ(a?b)%%":                           "Incorrect configuration: %REQ(a?b)%%. Couldn't find valid command at position 10",
		"abc %REQ(a)%%REQ(b)% %foo":             "Incorrect configuration: abc %REQ(a)%%REQ(b)% %foo. Couldn't find valid command at position 21",
		"% PROTOCOL%":                           "Incorrect configuration: % PROTOCOL%. Couldn't find valid command at position 0",
		"%START_TIME(a\nb)%":                    "Incorrect configuration: %START_TIME(a\nb)%. Couldn't find valid command at position 0",
		"%PROTOCOL(a)%":                         "PROTOCOL does not take any parameters or length",
		"%PROTOCOL:3%":                          "PROTOCOL does not take any parameters or length",
		"%START_TIME(%Y):4%":                    "START_TIME does not allow length to be specified.",
		"%START_TIME(%n)%":                      "Invalid header configuration. Format string contains newline.",
		"%EMIT_TIME(%_3En)%":                    "Invalid header configuration. Format string contains newline.",
		"%START_TIME(%%n)%":                     "Invalid header configuration. Format string contains newline.",
		"%DYNAMIC_METADATA%":                    "DYNAMIC_METADATA requires parameters",
		"%CLUSTER_METADATA(a):3%":               "CLUSTER_METADATA does not allow length to be specified.",
		"%METADATA%":                            " is not supported type of metadata",
		"%METADATA(UPSTREAM:a:b)%":              "UPSTREAM is not supported type of metadata",
		"%FILTER_STATE%":                        "Invalid filter state configuration, key cannot be empty.",
		"%FILTER_STATE(a:FIELD)%":               "Invalid filter state serialize type, FIELD should be used with the field name.",
		"%FILTER_STATE(a:PLAIN:x)%":             "Invalid filter state serialize type, FIELD should be used with the field name.",
		"%FILTER_STATE(a:BLAH)%":                "Invalid filter state serialize type, only support PLAIN/TYPED/FIELD.",
		"%PATH(a)%":                             "Invalid PATH option: 'a', only 'WQ'/'NQ' are allowed",
		"%PATH(WQ:x)%":                          "Invalid PATH option: 'x', only 'ORIG'/'PATH'/'ORIG_OR_PATH' are allowed",
		"%QUERY_PARAMS(a)%":                     "Invalid QUERY_PARAMS option: 'a', only 'ORIG'/'DECODED' are allowed",
		"%REQUESTED_SERVER_NAME(a)%":            "Invalid REQUESTED_SERVER_NAME option: 'a', only 'SNI_ONLY'/'SNI_FIRST'/'HOST_FIRST' are allowed",
		"%REQUESTED_SERVER_NAME(HOST_FIRST:x)%": "Invalid REQUESTED_SERVER_NAME option: 'x', only 'ORIG_OR_HOST'/'HOST'/'ORIG' are allowed",
		"%GRPC_STATUS(a)%":                      "GrpcStatusFormatter only supports CAMEL_STRING, SNAKE_STRING or NUMBER. Got: a",
		"%COMMON_DURATION(a)%":                  "Invalid common duration configuration: a.",
		"%COMMON_DURATION(a:b:ms:c)%":           "Invalid common duration configuration: a:b:ms:c.",
		"%COMMON_DURATION(a:b:s)%":              "Invalid common duration precision: s.",
		"%COALESCE%":                            "COALESCE requires parameters",
		"%COALESCE(a)%":                         "COALESCE: failed to parse JSON configuration: invalid character 'a' looking for beginning of value",
		"%COALESCE({})%":                        "COALESCE: JSON configuration must contain 'operators' array",
		"%COALESCE([])%":                        "COALESCE: JSON configuration must contain 'operators' array",
		`%COALESCE({"operators": []})%`:         "COALESCE: 'operators' array must not be empty",
		`%COALESCE({"operators": "a"})%`:        "COALESCE: 'operators' must be an array: key 'operators' missing or not an array",
		`%COALESCE({"operators": [1]})%`:        "COALESCE: failed to parse operator at index 0: operator entry must be either a string (command name) or an object with 'command' field",
		`%COALESCE({"operators": ["BOGUS"]})%`:  "COALESCE: failed to parse operator at index 0: unknown command: 'BOGUS'",
		`%COALESCE({"operators": [{"command": "REQ"}]})%`:                                  "COALESCE: failed to parse operator at index 0: REQ requires parameters",
		`%COALESCE({"operators": [{"param": "REQ"}]})%`:                                    "COALESCE: failed to parse operator at index 0: operator object must have 'command' field: key 'command' missing or not a string",
		`%COALESCE({"operators": [{"command": "REQ", "param": 3}]})%`:                      "COALESCE: failed to parse operator at index 0: 'param' field must be a string: key 'param' missing or not a string",
		`%COALESCE({"operators": [{"command": "REQ", "param": "a", "max_length": "3"}]})%`: "COALESCE: failed to parse operator at index 0: 'max_length' field must be an integer: key 'max_length' missing or not an integer",
		`%COALESCE({"operators": [{"command": "REQ", "param": "a", "max_length": 0}]})%`:   "COALESCE: failed to parse operator at index 0: 'max_length' must be a positive integer",
		`%COALESCE({"operators": [{"command": "COALESCE", "param": "{}"}]})%`:              "COALESCE: failed to parse operator at index 0: COALESCE: JSON configuration must contain 'operators' array",
		"%CEL(request.path)%":           "CEL is not supported yet",
		"%ROUTE_RESOLUTION_COUNT%":      "ROUTE_RESOLUTION_COUNT is not supported yet",
		"%UPSTREAM_HOSTS_ATTEMPTED(a)%": "UPSTREAM_HOSTS_ATTEMPTED does not take any parameters or length",
		"%UPSTREAM_FILTER_STATE%":       "Invalid filter state configuration, key cannot be empty.",
		"%STREAM_INFO_REQ%":             "STREAM_INFO_REQ requires parameters",
	} {
		_, err := format.ParseText(f, options())
		text := ""
		if err != nil {
			text, _, _ = strings.Cut(err.Error(), "; ") // what to do
		}
		if err == nil || text != strings.ReplaceAll(want, "\n", `\n`) {
			t.Errorf("%q: got  %v\nwant %s", f, err, want)
		}
	}
}

func TestAccepted(t *testing.T) {
	for _, f := range []string{"", "%%", "x%%y%PROTOCOL%", "%%%PROTOCOL%", "%PROTOCOL()%", "%REQ(A%B)%", "%START_TIME()%", "%START_TIME(%s:%3f)%",
		"%START_TIME(%Q)%", "%START_TIME(%10n)%", "%PATH:3%", "%PATH(:ORIG)%", "%PATH(WQ:ORIG:a)%", "%FILTER_STATE(a:FIELD:x:y)%",
		`%UPSTREAM_METADATA(["a","b"])%`, "%DYNAMIC_METADATA(:)%", "%QUERY_PARAM(a b)%", `%COALESCE({"operators": ["RESPONSE_CODE"], "x": 1})%`} {
		if _, err := format.ParseText(f, options()); err != nil {
			t.Errorf("%q: %v", f, err)
		}
	}
}

func TestCoalesceDepth(t *testing.T) {
	nest := func(n int) string {
		f := `{"operators": ["PROTOCOL"]}`
		for range n - 1 {
			f = `{"operators": [{"command": "COALESCE", "param": "` + strings.ReplaceAll(strings.ReplaceAll(f, `\`, `\\`), `"`, `\"`) + `"}]}`
		}
		return "%COALESCE(" + f + ")%"
	}
	if _, err := format.ParseText(nest(8), options()); err != nil {
		t.Errorf("8 deep: %v", err)
	}
	if _, err := format.ParseText(nest(9), options()); err == nil || !strings.Contains(err.Error(), "nested deeper than 8") {
		t.Errorf("9 deep: %v", err)
	}
}

func FuzzParseText(f *testing.F) {
	for _, s := range []string{format.DefaultHTTP, "%REQ(a?b):5%", "%%", "%START_TIME(%E3S %9f %-_d %:::z %999d %E999f)%", "%COALESCE({\"operators\": [\"PROTOCOL\"]})%",
		"%DYNAMIC_METADATA(a:b)%", "%FILTER_STATE(a:FIELD:b)%", "%QUERY_PARAMS(DECODED)%", "%REQ(a))):3%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := format.ParseText(s, options())
		if err != nil {
			return
		}
		c := request()
		text := p.Evaluate(nil, c)
		if strings.IndexByte(s, '%') < 0 && string(text) != s {
			t.Errorf("%q gives %q", s, text)
		}
		j, err := format.ParseJSON(map[string]any{"k": s}, options())
		if err != nil {
			t.Fatalf("text only: %v", err)
		}
		checkJSON(t, j.Evaluate(nil, c))
	})
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for f, want := range map[string]string{
		"cpu 100% %START_TIME%\n": "position 7; a literal % is written %%",
		"100%":                    "; a literal % is written %%",
		"100%OK":                  "; a literal % is written %%",
		"%REQ(:path%":             "; the parenthesis after %REQ is not closed in its line",
		"%REQ(:path\n)%":          "; the parenthesis after %REQ is not closed in its line",
		"%REQ(a):x%":              "; what follows %REQ is (parameters), then :length with a number",
		"%START_TIME":             "; the % that ends %START_TIME is missing",
		"%start_time%":            "; did you mean '%START_TIME'? (operators are in capitals)",
		"%START_TIM%":             "; did you mean 'START_TIME'?",
		"%REQUEST(:path)%":        "; did you mean 'REQ'?",
		"%RESPONSE(a)%":           "; did you mean 'RESP'?",
		"%START_TIM% %REQ%":       "did you mean 'START_TIME'?\nREQ requires parameters",
	} {
		if _, err := format.ParseText(f, options()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", f, err, want)
		}
	}
}
