package devstack

import (
	"context"
	"fmt"
	"net"
)

// freePorts returns n different loopback ports that nobody listens on now.
// They are held until all are drawn, so that no port comes twice.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var (
		config    net.ListenConfig
		ports     = make([]int, 0, n)
		listeners = make([]net.Listener, 0, n)
	)
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		listeners = append(listeners, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}

	return ports, nil
}
