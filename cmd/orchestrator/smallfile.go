package main

import (
	"fmt"
	"io"
	"os"
)

// What a person writes, or a tool for one, is small: a name that was mistaken for such a file may be of a map, a disk or an endless device.
const (
	maxSecretFile  = 1 << 20
	maxConfigFile  = 1 << 20
	maxCatalogFile = 64 << 20 // every cell of the earth, named, is a tenth of it
)

// readSmall reads a file that has no more than the bytes that it may have, and of any other not more than that.
func readSmall(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes: is it the right file?", name, most)
	}
	return b, nil
}
