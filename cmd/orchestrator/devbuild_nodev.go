//go:build nodev

package main

import "github.com/spf13/cobra"

// devExample is empty: a build without a broker has nothing to show by itself.
const devExample = ""

func devOf(s streams) *cobra.Command { return withoutBroker(newDev(s)) }
