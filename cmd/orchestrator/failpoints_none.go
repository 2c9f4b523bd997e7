//go:build !failpoint

package main

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/consumer"
)

// failpoints break the program at chosen points. This build has none: only one with the tag failpoint does, for test/failpoints.
type failpoints struct{}

func newFailpoints() (failpoints, error)                       { return failpoints{}, nil }
func (failpoints) clients() []kgo.Opt                          { return nil }
func (failpoints) store(s commit.Store) commit.Store           { return s }
func (failpoints) owners(o commit.Owners) commit.Owners        { return o }
func (failpoints) consuming(c consumer.Config) consumer.Config { return c }
