package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"milepost/internal/telemetry"
)

// operatorFlags are the flags of a process that operators may ask for something.
func operatorFlags(fs *pflag.FlagSet, o *telemetry.Operators) {
	fs.StringVar(&o.TokenFile, "operator-token-file", "",
		"`file` with the bearer token for what operators ask for over HTTP, read at each request; empty: only programs of this machine may")
}

func checkOperators(o telemetry.Operators) error {
	if err := o.Check(); err != nil {
		return fmt.Errorf("--operator-token-file: %w", err)
	}
	return nil
}
