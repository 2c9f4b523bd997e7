package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// cacheEnv names the environment variable that moves the cache folder.
const cacheEnv = "MILEPOST_CACHE"

// CacheDir is where fetched programs are kept: $MILEPOST_CACHE, else the
// user's cache folder. Root gets /var/cache instead of its own, which the
// user that Postgres then runs under could not read.
func CacheDir() (string, error) {
	if dir := os.Getenv(cacheEnv); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", cacheEnv, err)
		}

		return abs, nil
	}
	if os.Getuid() == 0 {
		return "/var/cache/milepost", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder (set %s): %w", cacheEnv, err)
	}

	return filepath.Join(dir, "milepost"), nil
}

// cached returns the folder name in the cache, after build has filled it if it
// is not there yet. build works in a folder beside it that takes its place by
// one rename; other processes wait meanwhile.
func cached(ctx context.Context, name string, build func(dir string) error) (string, error) {
	root, err := CacheDir()
	if err != nil {
		return "", err
	}
	place := filepath.Join(root, name)
	if _, err := os.Stat(place); err == nil {
		return place, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	unlock, err := lockFile(ctx, place+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()

	if _, err := os.Stat(place); err == nil {
		return place, nil // another process was quicker
	}
	work := place + ".part"
	if err := os.RemoveAll(work); err != nil {
		return "", fmt.Errorf("clear an unfinished cache entry: %w", err)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", fmt.Errorf("make a cache entry: %w", err)
	}
	if err := build(work); err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	if err := os.Rename(work, place); err != nil {
		return "", fmt.Errorf("finish a cache entry: %w", err)
	}

	return place, nil
}

// lockFile takes an exclusive lock that the kernel gives back when this
// process ends, however it ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the cache lock: %w", err)
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()

			return nil, fmt.Errorf("lock the cache: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()

			return nil, fmt.Errorf("wait for another process's download: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
