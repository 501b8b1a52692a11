// Package hcm: this file is not hot, though it has the word //hot in a comment.
package hcm

import "fmt"

func describe(n int) string { return fmt.Sprintf("%d", n) }
