// Package native is the Go interface of the C packet engine, and the only package that calls C.
//
// It wraps the functions of the public headers (dq.h) in typed Go handles and nothing more: names, validity of bursts, ownership
// by tasks and error texts for scripts are handled by runtime/session.
//
// Pointer rules:
//
//   - C keeps no Go pointer after a call returns, and never calls Go.
//   - Handles (Queue, Burst, Stage, ...) are small comparable values around a C pointer. They
//     are valid as long as dq.h specifies, which is not checked here.
//   - Packet memory and burst columns belong to C. The slices that View returns refer to
//     that memory: they are valid while the caller's reference to the burst lasts.
//   - A Waiter's events lie in C memory, allocated once: waiting allocates nothing.
//
// A method runs on the thread that dq.h specifies for its function. For "owner's thread" the calling goroutine must be locked to
// its OS thread.
package native
