// Package txnstate is what the sessions of both protocols keep of the transaction under way: its savepoints
// ([Savepoints]), how much of it waits to be recorded ([Unrecorded]), and the memory that the next one may use again
// ([StmtCapacity], [Reusable]).
package txnstate
