package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"milepost/test/goldentest"
)

// asProgram makes the test's own binary the program: a process that a test may start and signal.
const asProgram = "MILEPOST_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// outcome is what one command line did.
type outcome struct {
	code     int
	out, err string
}

func orchestrator(t *testing.T, in string, args ...string) outcome {
	t.Helper()
	var out, stderr bytes.Buffer
	code := execute(context.WithoutCancel(t.Context()), args, strings.NewReader(in), &out, &stderr)
	return outcome{code, out.String(), stderr.String()}
}

// V3: wrong usage is exit code 2 and says what to do.
func TestUsageErrors(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		say  string
	}{
		"unknown verb":      {[]string{"fly"}, `unknown command "fly" for "orchestrator" (see: orchestrator --help)`},
		"nearly a verb":     {[]string{"statsu"}, "did you mean status?"},
		"nearly a lower":    {[]string{"partition", "lst"}, "did you mean list? see: orchestrator partition --help"},
		"unknown flag":      {[]string{"run", "--fast"}, "orchestrator run --help"},
		"no map":            {[]string{"match", "x.gpx"}, "--map must be set (or MILEPOST_MAP)"},
		"no trace":          {[]string{"match", "--map", "m.osm"}, "requires at least 1 arg"},
		"bad columns":       {[]string{"match", "--map", "m.osm", "--columns", "=", "x.csv"}, "--columns"},
		"bad input":         {[]string{"replay", "--input", "xml", "x"}, `--input is "xml"`},
		"bad time mode":     {[]string{"replay", "--time", "now", "x.csv"}, "keep or shift"},
		"all of run's":      {[]string{"run", "--mode", "fast", "--start", "middle", "--solvers", "-1"}, `--mode is "fast"`},
		"dsn":               {[]string{"run"}, "--dsn must be set (or MILEPOST_DSN)"},
		"counter's map":     {[]string{"run", "--workload", "counter", "--map", "m.osm"}, "--map, --catalog and --profiles are of --workload fleet"},
		"counter, remote":   {[]string{"run", "--workload", "counter", "--solver", "remote"}, "--solver remote is of --workload fleet"},
		"counter backwards": {[]string{"run", "--counter-solve-time", "-1s"}, "--counter-solve-time is -1s"},
		"migrate sideways":  {[]string{"migrate", "sideways"}, `invalid argument "sideways"`},
		"migrate where":     {[]string{"migrate", "up"}, "--dsn must be set"},
		"vehicles":          {[]string{"dev", "--vehicles", "0"}, "--vehicles"},
		"log level":         {[]string{"match", "--map", "m.osm", "--log-level", "loud", "x.gpx"}, `log level is "loud"`},
		"sasl":              {[]string{"replay", "--kafka-user", "me", "x.csv"}, "need --kafka-sasl"},
		"certificate alone": {[]string{"replay", "--kafka-cert", "c.pem", "x.csv"}, "go together"},
	} {
		t.Run(name, func(t *testing.T) {
			got := orchestrator(t, "", c.args...)
			if got.code != exitUsage || !strings.Contains(got.err, c.say) || got.out != "" {
				t.Errorf("%v: %+v, want exit code 2, nothing printed, and %q", c.args, got, c.say)
			}
		})
	}
}

// V1: defaults < file < environment < flags, each through the flag's own parser; config names the source.
func TestSettingsLayers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "milepost.toml")
	write(t, file, "lanes = 5\ngroup = \"of-file\"\nsession-timeout = \"20s\"\nbrokers = [\"a:1\", \"b:2\"]\n")
	t.Setenv("MILEPOST_GROUP", "of-environment")
	t.Setenv("MILEPOST_SESSION_TIMEOUT", "30s")
	t.Setenv("MILEPOST_DSN", "postgres://u:hunter2@h/d")
	got := orchestrator(t, "", "config", "--config", file, "--session-timeout", "40s")
	if got.code != 0 {
		t.Fatalf("config: %+v", got)
	}
	for _, want := range []string{
		"lanes 5 (file)", "group of-environment (environment)", "session-timeout 40s (flag)", "brokers [a:1,b:2] (file)",
		"dsn *** (environment)", "prefix milepost (default)",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("config does not say %q:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out+got.err, "hunter2") {
		t.Error("config prints the password")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// V1: one file serves every verb; consent to what cannot be undone comes from the command line alone.
func TestSettingsOfOtherVerbs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "milepost.toml")
	write(t, file, "lanes = 5\nmap = \"m.osm\"\n")
	if got := orchestrator(t, "", "migrate", "up", "--config", file); !strings.Contains(got.err, "--dsn must be set") {
		t.Errorf("a file with run's settings, to migrate: %+v", got)
	}
	t.Setenv("MILEPOST_YES", "true")
	got := orchestrator(t, "", "partition", "reset", "--dsn", "postgres://u@127.0.0.1:1/d", "--brokers", "127.0.0.1:1", "--raw", "r", "--group", "g")
	if got.code != exitUsage || !strings.Contains(got.err, "--yes") {
		t.Errorf("consent from the environment: %+v", got)
	}
	write(t, file, "yes = true\n")
	if got := orchestrator(t, "", "config", "--config", file); got.code != exitUsage || !strings.Contains(got.err, "unknown settings: yes") {
		t.Errorf("consent from the file: %+v", got)
	}
}

// V1: what is wrong in the file or the environment is named by its place.
func TestSettingsErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "milepost.toml")
	write(t, file, "lanes = 5\nlaness = 6\n")
	if got := orchestrator(t, "", "config", "--config", file); got.code != exitUsage || !strings.Contains(got.err, "unknown settings: laness") {
		t.Errorf("an unknown setting: %+v", got)
	}
	write(t, file, "lanes = \"many\"\n")
	t.Setenv("MILEPOST_DRAIN_GRACE", "soon")
	got := orchestrator(t, "", "config", "--config", file)
	if got.code != exitUsage || !strings.Contains(got.err, "setting lanes in milepost.toml") || !strings.Contains(got.err, "MILEPOST_DRAIN_GRACE") {
		t.Errorf("bad values: %+v", got)
	}
	write(t, file, "lanes = = 5\n")
	if got := orchestrator(t, "", "config", "--config", file); got.code != exitUsage || !strings.Contains(got.err, "milepost.toml") {
		t.Errorf("not TOML: %+v", got)
	}
	if got := orchestrator(t, "", "config", "--config", "nowhere.toml"); got.code != exitUsage || !strings.Contains(got.err, "nowhere.toml") {
		t.Errorf("no such file: %+v", got)
	}
}

// Golden: every verb's help has examples and says what it prints.
func TestHelp(t *testing.T) {
	for _, verb := range []string{
		"matcher",
		"graph", "graph build", "graph info", "graph check",
		"", "catalog", "catalog check", "catalog show", "catalog reload", "match", "replay", "migrate", "config", "version", "dev", "run", "status", "partition", "partition list", "partition show",
		"partition seek", "partition reset", "partition ledger", "quarantine", "quarantine list", "quarantine show", "quarantine release", "quarantine discard", "doctor",
	} {
		args := []string{"--help"}
		name := "orchestrator"
		if verb != "" {
			args, name = append(strings.Fields(verb), "--help"), strings.ReplaceAll(verb, " ", "-")
		}
		got := orchestrator(t, "", args...)
		if got.code != 0 || !strings.Contains(got.out, "Examples:") {
			t.Errorf("help of %s: code %d, examples %v", name, got.code, strings.Contains(got.out, "Examples:"))
		}
		golden(t, filepath.Join("help", name+".txt"), got.out)
	}
}

// V1: config refuses what run would refuse, in what was given.
func TestConfigRefusesWhatRunDoes(t *testing.T) {
	for say, c := range map[string][]string{
		`--mode is "foo"`:         {"--mode", "foo"},
		"session timeout is 1ms":  {"--session-timeout", "1ms"},
		"lanes is 99":             {"--lanes", "99"},
		"needs --kafka-sasl":      {"--kafka-token-file", "t"},
		`log level is "loud"`:     {"--log-level", "loud"},
		"exclude each other":      {"--map", "m", "--catalog", "c"},
		"--group must be set (or": {"--group", ""},
	} {
		got := orchestrator(t, "", append([]string{"config"}, c...)...)
		if got.code != exitUsage || !strings.Contains(got.err, say) || !strings.Contains(got.out, "session-timeout") {
			t.Errorf("config %v: %+v, want the settings, exit code 2, and %q", c, got, say)
		}
		ran := orchestrator(t, "", append([]string{"run", "--dsn", "x", "--map", "nowhere.osm"}, c...)...)
		if ran.code != exitUsage || !strings.Contains(ran.err, say) {
			t.Errorf("run %v: %+v, want exit code 2, and %q", c, ran, say)
		}
	}
}

// V1: a variable that looks like a setting and is none is named, once; those of tests and scripts are not.
func TestStrangersInTheEnvironment(t *testing.T) {
	t.Setenv("MILEPOST_LANE", "4")
	t.Setenv("MILEPOST_TEST_BROKERS", "127.0.0.1:1")
	t.Setenv("MILEPOST_KAFKA_IMAGE", "kafka")
	t.Setenv("MILEPOST_CONFIG", "")
	got := orchestrator(t, "", "config")
	if got.code != exitDone || got.err != "orchestrator: in the environment, not a setting: MILEPOST_LANE\n" {
		t.Errorf("config: code %d, %q", got.code, got.err)
	}
}

// A build without a broker says so before it does anything else.
func TestDevWithoutItsBroker(t *testing.T) {
	var out, stderr bytes.Buffer
	dev := withoutBroker(newDev(streams{out: &out, err: &stderr}))
	dev.SilenceErrors, dev.SilenceUsage = true, true
	dev.SetArgs([]string{"--map", "nowhere.osm"})
	err := dev.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--brokers must be set") || stderr.Len() > 0 {
		t.Errorf("dev: %v, %q", err, stderr.String())
	}
}

func TestVersion(t *testing.T) {
	if got := orchestrator(t, "", "--version"); got.code != 0 || !strings.HasPrefix(got.out, "orchestrator development (go") {
		t.Errorf("--version: %+v", got)
	}
	got := orchestrator(t, "", "version", "--json")
	if got.code != 0 || !strings.Contains(got.out, `"version":"development"`) {
		t.Errorf("version: %+v", got)
	}
}

// V3: a result that could not be written is a failure, whatever the verb.
func TestOutputThatCannotBeWritten(t *testing.T) {
	var stderr bytes.Buffer
	code := execute(t.Context(), []string{"config"}, strings.NewReader(""), full{}, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("code %d, %q, want 1 and the reason", code, stderr.String())
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name), got)
}
