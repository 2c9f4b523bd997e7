package devstack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var children []int
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (name) state parent …; the name may hold spaces and brackets.
		text := string(b)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			children = append(children, child)
		}
	}

	return children, nil
}
