package devstack

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// KafkaVersion is the broker that kafka.pom.xml names.
const KafkaVersion = "4.4.0"

// minJava is the oldest Java that this broker runs on.
const minJava = 17

//go:embed kafka.pom.xml
var kafkaPOM []byte

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// KafkaJars returns the folder of the broker's jars from Maven Central,
// fetched once into the cache.
func KafkaJars(ctx context.Context, logger *slog.Logger) (string, error) {
	return cached(ctx, "kafka-"+KafkaVersion, func(dir string) error {
		maven, err := exec.LookPath("mvn")
		if err != nil {
			return fmt.Errorf("a real broker needs Maven once, to fetch it: %w", err)
		}
		logger.InfoContext(ctx, "downloading Kafka from Maven Central (54 MB, once)", slog.String("version", KafkaVersion))
		pom := filepath.Join(dir, "pom.xml")
		if err := os.WriteFile(pom, kafkaPOM, 0o644); err != nil { //nolint:gosec // public
			return fmt.Errorf("write the list of jars: %w", err)
		}
		_, err = runTool(ctx, command{name: "mvn", path: maven, dir: dir, args: []string{
			"-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory=" + dir,
		}}, "")

		return err
	})
}

// findJava returns the java command, when it is new enough.
func findJava(ctx context.Context) (string, error) {
	java, err := exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); err != nil && home != "" {
		java, err = exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	if err != nil {
		return "", fmt.Errorf("a real broker needs Java %d or newer: %w", minJava, err)
	}
	out, err := runTool(ctx, command{name: "java -version", path: "/bin/sh", args: []string{"-c", `exec "$0" -version 2>&1`, java}}, "")
	if err != nil {
		return "", err
	}
	m := javaVersion.FindStringSubmatch(out)
	if m == nil {
		return "", errors.New("read java's version: unknown answer")
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n < minJava {
		return "", fmt.Errorf("a real broker needs Java %d or newer, found %s", minJava, m[1])
	}

	return java, nil
}
