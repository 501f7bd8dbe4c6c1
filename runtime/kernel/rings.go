package kernel

// TakesContext reports whether parameter i is a pointer that may be the GN context.
func (k *Kernel) TakesContext(i int) bool {
	return k.pointerArg(i, "the context") == nil && pointee(k.Params[i].Text) == ""
}
