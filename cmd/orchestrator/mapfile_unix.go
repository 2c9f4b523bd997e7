//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// mapIntoMemory gives a file's bytes, read-only and shared with every process that maps the same file. A file in use must not be
// shortened; a new one is put in its place, as graph build does.
func mapIntoMemory(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || int64(int(info.Size())) != info.Size() {
		return nil, fmt.Errorf("%s: %d bytes cannot be mapped into memory", filepath.Base(path), info.Size())
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s into memory: %w", filepath.Base(path), err)
	}
	return data, nil
}
