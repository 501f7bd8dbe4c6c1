package s3

// Op receives the outcome of packets that were added together. Implementations must be safe for concurrent use.
type Op interface {
	OK(packets, bytes int)       // stored in an object, with their number of bytes
	Lost(packets int, why error) // not stored
}

// settle reports the outcome of n packets to op, which may be nil; err is nil if they are stored.
func settle(op Op, n, bytes int, err error) {
	switch {
	case op == nil:
	case err == nil:
		op.OK(n, bytes)
	default:
		op.Lost(n, err)
	}
}
