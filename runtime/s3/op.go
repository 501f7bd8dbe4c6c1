package s3

// Op is told what became of packets that were handed over together. Safe for concurrent use.
type Op interface {
	OK(packets, bytes int)       // they are in an object, with so many bytes
	Lost(packets int, why error) // they will be in none
}

// settle tells op, which may be nil, what became of n packets: err nil, they are in an object.
func settle(op Op, n, bytes int, err error) {
	switch {
	case op == nil:
	case err == nil:
		op.OK(n, bytes)
	default:
		op.Lost(n, err)
	}
}
