package kernel

import "github.com/daqiri/daqiri-run/native"

// TakesContext reports whether parameter i is a pointer that may be the GN context.
func (k *Kernel) TakesContext(i int) bool {
	return k.pointerArg(i, "the context") == nil && pointee(k.Params[i].Text) == ""
}

// PointerArg returns an error unless argument i can be passed as a pointer.
func (k *Kernel) PointerArg(i int, what string) error { return k.pointerArg(i, what) }

// SemaphoreArg returns an array as argument i, whose type is not checked.
func (k *Kernel) SemaphoreArg(i int, a *Array) (Arg, error) {
	if err := k.pointerArg(i, "a semaphore"); err != nil {
		return Arg{}, err
	}
	return Arg{KernelArg: native.KernelArg{Kind: native.ArgArray, Array: a.native}, Array: a}, nil
}
