// Package share lends the aggregates of a share stage to other processes, which map the memory of their region read-only.
//
// Readers connect to a unix socket of type SOCK_SEQPACKET. The program announces each block to each reader and keeps its buffer until all of
// these have released it or disconnected. All state is in the program: shared memory contains data and block headers only, so a reader can
// neither block nor corrupt the program. PROTOCOL.md defines the messages.
package share
