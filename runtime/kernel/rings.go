package kernel

// TakesPort reports whether parameter i is a pointer that may be the port's.
func (k *Kernel) TakesPort(i int) bool {
	return k.pointerArg(i, "the port") == nil && pointee(k.Params[i].Text) == ""
}
