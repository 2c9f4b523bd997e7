package publish

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Away reports whether an error of the start says that brokers are not there yet: unreachable, starting, without a leader.
// Everything else (a wrong setting, a missing right, a certificate that does not fit) no waiting can mend.
func Away(err error) bool {
	var (
		network net.Error
		op      *net.OpError
	)
	switch {
	case err == nil:
		return false
	case errors.As(err, &op) && op.Op == "remote error":
		return false // a TLS alert: the broker is there and does not want us
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &network):
		return true
	}
	return kerr.IsRetriable(err) && !is(err, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID)
}
