// Package docs holds the pages that the program itself shows. They are read-only data.
package docs

import _ "embed"

// Differs is the page of known differences from Envoy.
//
//go:embed differs.md
var Differs string
