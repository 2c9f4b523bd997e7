//go:build integration && race

package integration_test

const raceEnabled = true
