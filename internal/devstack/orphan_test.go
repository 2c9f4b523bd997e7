//go:build linux && !nodev

package devstack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"milepost/internal/devstack"
)

// parentEnv makes this test program the parent that TestChildrenDieWithParent
// kills; its value is the database's folder.
const parentEnv = "MILEPOST_DEVSTACK_PARENT"

// beParent starts a server, says so, and waits to be killed.
func beParent(dir string) {
	_, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir, Unsafe: true})
	fmt.Println("started:", err)
	select {}
}

// TestChildrenDieWithParent (invariant 1): a program that is killed with -9
// leaves no server behind.
func TestChildrenDieWithParent(t *testing.T) {
	dir, err := os.MkdirTemp("", "milepost-orphan-") //nolint:usetesting // root's server runs as a user who cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "started: <nil>\n" {
		t.Errorf("the parent said %q, %v", line, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Error(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	server, err := strconv.Atoi(first)
	if err != nil || syscall.Kill(server, 0) != nil {
		t.Errorf("no server runs as %q", first)
	}

	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // killed
	ctx := limit(t, 20*time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !errors.Is(syscall.Kill(server, 0), syscall.ESRCH) {
		select {
		case <-ctx.Done():
			t.Fatal("the server outlives its parent")
		case <-tick.C:
		}
	}
}
