package main

import (
	"archive/zip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed peers
var peerFiles embed.FS

const (
	valhallaVersion    = "3.9.1"
	osrmVersion        = "26.10.0"
	graphHopperVersion = "10.2"
)

// peers is the folder, outside of the repository, that other matchers are installed in.
type peers string

func (p peers) valhallaFolder() string { return filepath.Join(string(p), "valhalla-"+valhallaVersion) }
func (p peers) osrmFolder() string     { return filepath.Join(string(p), "osrm-"+osrmVersion) }
func (p peers) graphHopperFolder() string {
	return filepath.Join(string(p), "graphhopper-"+graphHopperVersion)
}

func (p peers) valhallaBin(name string) string {
	return filepath.Join(p.valhallaFolder(), "valhalla", "bin", name)
}

func (p peers) osrmBin(name string) string {
	return filepath.Join(p.osrmFolder(), "osrm", "bin", name)
}

func (p peers) graphHopperClasses() string {
	return filepath.Join(p.graphHopperFolder(), "classes") + string(os.PathListSeparator) + filepath.Join(p.graphHopperFolder(), "lib", "*")
}

// install gets a peer from its package registry where it is not there yet.
func (p peers) install(ctx context.Context, engine string) error {
	switch engine {
	case "valhalla":
		return p.wheel(ctx, p.valhallaFolder(), "pyvalhalla=="+valhallaVersion, "valhalla/bin")
	case "osrm":
		return p.wheel(ctx, p.osrmFolder(), "osrm-bindings=="+osrmVersion, "osrm/bin")
	case "graphhopper":
		return p.jars(ctx)
	default:
		return nil
	}
}

// version is what a peer was installed as.
func version(engine string) string {
	return map[string]string{"valhalla": valhallaVersion, "osrm": osrmVersion, "graphhopper": graphHopperVersion}[engine]
}

// wheel unpacks the native programs of a Python package: they need no Python of the version that the package is for.
func (p peers) wheel(ctx context.Context, folder, requirement, programs string) error {
	return once(folder+".installed", func() error {
		down, err := os.MkdirTemp("", "wheel")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(down) }()
		if err := run(ctx, "python3", "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12", "--implementation", "cp",
			"--abi", "abi3", "--platform", "manylinux_2_28_x86_64", "-d", down, requirement); err != nil {
			return err
		}
		wheels, err := filepath.Glob(filepath.Join(down, "*.whl"))
		if err != nil || len(wheels) != 1 {
			return fmt.Errorf("%s: %d wheels: %w", requirement, len(wheels), err)
		}
		return unzip(wheels[0], folder, programs)
	})
}

// unzip unpacks an archive; what lies in the folder of programs can be run.
func unzip(archive, folder, programs string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("%s: leads out of the archive", f.Name)
		}
		if f.FileInfo().IsDir() {
			continue
		}
		to := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(f.Name, programs) {
			mode = 0o755
		}
		if err := unpack(f, to, mode); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func unpack(f *zip.File, to string, mode os.FileMode) (err error) {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// jars gets GraphHopper and its dependencies, and compiles the server.
func (p peers) jars(ctx context.Context) error {
	folder := p.graphHopperFolder()
	return once(folder+".installed", func() error {
		if err := os.MkdirAll(filepath.Join(folder, "classes"), 0o755); err != nil {
			return err
		}
		for _, name := range []string{"pom.xml", "LineServer.java"} {
			text, err := peerFiles.ReadFile("peers/" + name)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				return err
			}
		}
		if err := run(ctx, "mvn", "-q", "-B", "-f", filepath.Join(folder, "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(folder, "lib")); err != nil {
			return err
		}
		return run(ctx, "javac", "-cp", filepath.Join(folder, "lib", "*"), "-d", filepath.Join(folder, "classes"), filepath.Join(folder, "LineServer.java"))
	})
}

// once does something that takes long, unless a mark says that it is done.
func once(mark string, do func() error) error {
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}

// run runs a program to its end; what it said is part of the error.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out))
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, said[max(0, len(said)-400):])
	}
	return nil
}
