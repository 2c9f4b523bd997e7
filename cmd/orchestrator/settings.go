package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"milepost/internal/roadnet"
)

const envPrefix = "MILEPOST_"

// source says where a setting's value came from.
type source string

const (
	fromDefault source = "default"
	fromFile    source = "file"
	fromEnv     source = "environment"
	fromFlag    source = "flag"
)

// settle fills the flags that the command line left alone from the environment and the TOML file, in that order of precedence,
// and gives each flag's source (V1). Each value passes through the flag's own parser, so that a bad one is refused with the
// same words wherever it came from.
func settle(flags *pflag.FlagSet) (map[string]source, error) {
	fromFiles, fileName, err := readFile(flags)
	if err != nil {
		return nil, err
	}
	fromEnvironment, err := readEnv()
	if err != nil {
		return nil, err
	}
	sources := map[string]source{}
	var problems []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := f.Name
		var value, where string
		switch {
		case f.Changed:
			sources[name] = fromFlag
			return
		case name == "yes": // consent is given on the command line or not at all
			sources[name] = fromDefault
			return
		case fromEnvironment.Exists(name):
			sources[name], value, where = fromEnv, text(fromEnvironment.Get(name)), envName(name)
		case fromFiles.Exists(name):
			sources[name], value, where = fromFile, text(fromFiles.Get(name)), "setting "+name+" in "+filepath.Base(fileName)
		default:
			sources[name] = fromDefault
			return
		}
		if err := flags.Set(name, value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", where, err))
		}
	})
	return sources, usage(errors.Join(problems...))
}

func readFile(flags *pflag.FlagSet) (k *koanf.Koanf, name string, err error) {
	k = koanf.New("\x00") // names are flat: no delimiter
	path := flags.Lookup("config")
	if path == nil {
		return k, "", nil
	}
	name = path.Value.String()
	if name == "" {
		name = os.Getenv(envName("config"))
	}
	if name == "" {
		return k, "", nil
	}
	text, err := readSmall(name, maxConfigFile)
	if err == nil {
		err = roadnet.CheckNesting(text)
	}
	if err != nil {
		return nil, name, usagef("configuration file %s: %w", name, err)
	}
	if err := k.Load(wasRead(text), toml.Parser()); err != nil {
		return nil, name, usagef("configuration file %s: %w", name, err)
	}
	known := knownSettings(newRoot(streams{}), map[string]bool{})
	var unknown []string
	for _, key := range k.Keys() {
		if !known[key] {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, name, usagef("configuration file %s: unknown settings: %s (a setting is named as its flag)", name, strings.Join(unknown, ", "))
	}
	return k, name, nil
}

// wasRead is a koanf.Provider of bytes at hand.
type wasRead []byte

func (b wasRead) ReadBytes() ([]byte, error)  { return b, nil }
func (wasRead) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }

// knownSettings gathers the flags of a verb and of all below it: one file serves every verb, and each reads of it what it has.
func knownSettings(cmd *cobra.Command, known map[string]bool) map[string]bool {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = f.Name != "config" && f.Name != "yes" })
	for _, below := range cmd.Commands() {
		knownSettings(below, known)
	}
	return known
}

func readEnv() (*koanf.Koanf, error) {
	k := koanf.New("\x00")
	err := k.Load(env.Provider("\x00", env.Opt{
		Prefix: envPrefix,
		TransformFunc: func(key, value string) (string, any) {
			return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(key, envPrefix)), "_", "-"), value
		},
	}), nil)
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	return k, nil
}

// strangers are the MILEPOST_ variables in an environment that no verb reads, nor a test, a script of CI or docker-compose.yml.
func strangers(environ []string) []string {
	known := knownSettings(newRoot(streams{}), map[string]bool{})
	known["config"] = true
	var strange []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		switch {
		case !ours, known[strings.ReplaceAll(strings.ToLower(rest), "_", "-")],
			strings.HasPrefix(rest, "TEST_"), strings.HasPrefix(rest, "CI_"), rest == "IMAGE", strings.HasSuffix(rest, "_IMAGE"),
			slices.Contains([]string{"DATA", "STACK", "CACHE", "TUNE", "SYNTH", "EACH", "UPDATE", "KEEP_MAP", "DEBIAN_MIRROR"}, rest):
		default:
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	return strange
}

// envName is the environment variable of a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// text gives a value of the file as the flag's parser reads it: lists are joined by commas.
func text(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprint(x)
	}
	return strings.Join(parts, ",")
}
