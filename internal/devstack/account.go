package devstack

import (
	"fmt"
	"os/user"
	"strconv"
)

// lookupAccount finds the first of the named users.
func lookupAccount(names ...string) (*account, error) {
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the id of user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the group of user %s: %w", name, err)
		}

		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}

	return nil, fmt.Errorf("no user of %v to run postgres under, which refuses root", names)
}
