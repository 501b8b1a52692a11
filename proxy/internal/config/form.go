package config

import (
	"bytes"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// maxOtherForm bounds what is read again to find out in which form it is.
const maxOtherForm = 16 << 20

// OtherForm tells of a file that could not be read in the form that the end of its name means, as which name it could be: "" if it is in
// no form at all. advice says what ends mean what.
func OtherForm(name string, data []byte) (asName, advice string) {
	if len(data) > maxOtherForm || Nameless(name) || name == configYAMLName {
		return "", ""
	}
	is, holds, ext := formByName(name), "", ""
	switch {
	case is != "YAML" && isMap(yamlpos.ParseJSON(name, data)):
		holds, ext = "JSON", ".json"
	case is != "YAML" && isMap(yamlpos.ParseYAML(name, data)):
		holds, ext = "YAML", ".yaml"
	case is != protoText && len(bytes.TrimSpace(data)) > 0 && (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &bootstrapv3.Bootstrap{}) == nil:
		holds, ext = protoText, ".pb_text"
	default:
		return "", ""
	}
	if holds == is {
		return "", ""
	}
	base := filepath.Base(name)
	if old := filepath.Ext(base); len(old) > 1 && len(old) < len(base) {
		base = strings.TrimSuffix(base, old)
	}
	return strings.TrimSuffix(base, ext) + ext, "the file holds " + holds + ", and its name says " + is + ": .yaml and .yml mean YAML, .pb_text the text form of protobuf, .pb its binary form, " +
		"every other end JSON, as in Envoy"
}

const protoText = "protobuf text"

func formByName(name string) string {
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".pb"):
		return "binary protobuf"
	case strings.HasSuffix(lower, ".pb_text"):
		return protoText
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"):
		return "YAML"
	}
	return "JSON"
}

func isMap(t *yamlpos.Tree, err error) bool { return err == nil && t.Kind(t.Root()) == yamlpos.Map }

// orOther completes the error about a file that could not be read at all.
func orOther(name string, data []byte, err error) error {
	var x *Error
	switch e := err.(type) {
	case *Error:
		x = e
	case *Errors:
		if len(e.List) > 0 {
			x = e.List[0]
		}
	}
	if x == nil || x.Kind != Unreadable {
		return err
	}
	if x.Suggestion, x.Advice = OtherForm(name, data); x.Advice != "" {
		if all, ok := err.(*Errors); ok { // what else is wrong with it follows
			all.List, all.More = all.List[:1], 0
		}
		return err
	}
	if line := lineOf(data, x.Line); bytes.Contains(line, []byte("{{")) || bytes.Contains(line, []byte("{%")) {
		x.Advice = "the file seems to be a template, which something has to fill in first"
		return err
	}
	if rest := bytes.TrimSpace(data); formByName(name) == "JSON" && (bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) || bytes.HasPrefix(rest, []byte("#"))) {
		x.Advice = "JSON has no comments; YAML has, in a file whose name ends in .yaml"
	}
	return err
}

// lineOf is a line of a text, counted from 1, without its end.
func lineOf(data []byte, n int) []byte {
	for line := range bytes.Lines(data) {
		if n--; n == 0 {
			return bytes.TrimRight(line, "\r\n")
		}
	}
	return nil
}
