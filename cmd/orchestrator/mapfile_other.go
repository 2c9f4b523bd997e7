//go:build !unix

package main

import "os"

// mapIntoMemory reads a file.
func mapIntoMemory(path string) ([]byte, error) { return os.ReadFile(path) }
