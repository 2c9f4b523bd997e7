//go:build !nodev

package main

import "github.com/spf13/cobra"

// devExample is the demo's line in the program's examples.
const devExample = "  orchestrator dev                                   the whole thing on this machine, with a simulated fleet\n"

func devOf(s streams) *cobra.Command { return newDev(s) }
