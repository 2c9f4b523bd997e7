//go:build unix && !linux

package devstack

import "errors"

func childrenOf(int) ([]int, error) {
	return nil, errors.New("pausing a server with its children is for linux")
}
