// Package standard lists the extensions that the dragoman binary has. The list is explicit: nothing registers itself.
package standard

import "github.com/dragoman-proxy/dragoman/api/ext"

// All returns the standard extensions.
func All() []ext.Set { return nil }
