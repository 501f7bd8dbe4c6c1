// Package native is the Go face of the C packet engine, and the only package that calls C.
//
// It gives the functions of the public headers (dq.h) typed Go handles and nothing more: names, validity of
// bursts, ownership by tasks and error texts for scripts are the business of runtime/session.
//
// Pointer rules:
//
//   - C keeps no Go pointer after a call returns, and never calls Go.
//   - Handles (Queue, Burst, Stage, …) are small comparable values around a C pointer. They
//     are valid as long as dq.h says; nothing here checks it.
//   - Packet memory and burst columns belong to C. The slices that View gives are windows on
//     that memory: they are valid while the caller's reference to the burst lasts.
//   - A Waiter's events lie in C memory, made once: waiting allocates nothing.
//
// A method runs on the thread that dq.h names for its function. Where it says "owner's
// thread", the calling goroutine must be locked to its OS thread.
package native
