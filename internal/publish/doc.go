// Package publish makes prepared commits visible in Kafka: it is commit.Publisher and commit.Ledger over franz-go,
// and the place where the service's own topics are created and checked. It decides nothing about keys and knows
// nothing of Postgres but the question "does this tenure still hold?" (Owners).
//
// A lane is one transactional producer. The lanes of a process take turns, because Kafka writes a
// transaction's markers after it has answered the commit and the same producer's next transaction waits for them.
//
// In mode idempotent a lane is a plain producer: X2 to X5 have no transaction to speak of, X10 stands in their place, and
// nothing stops a process that has lost a partition without knowing it from repeating what it had in hand. The bytes are the
// prepared commit's, so a repeat is the same record.
//
// Invariants:
//
//	X1 Every try follows lane → epochs → generation → nonces → send. A lane is initialised explicitly, right after its
//	   client is made; a tenure is looked up in Postgres after that and before the lane's first transaction with it.
//	X2 A lane's client never initialises itself behind our back: a client that sent an InitProducerID which we did
//	   not ask for commits nothing and is thrown away. (franz-go does so by itself, among others when the ledger's start has moved
//	   past its last record, which is exactly what a newer owner's housekeeping does to a zombie.)
//	X3 A transaction is committed only when every output, then every ledger record, then the offset commit of every
//	   partition is acknowledged. Outputs come first, so that the ledger says where they landed.
//	X4 Anything but success ends the client. A new client with the same id aborts what was open. There is no other
//	   way out of a failed transaction, so there is no second path to get wrong.
//	X5 Anything but success of EndTxn is unknown: the ledger, read at the known position of our own record, decides.
//	X6 Publish returns only when each commit's fate is known, or its context has ended.
//	X7 Member id and generation are read once per try, before the nonces; an empty member id or a generation below 1
//	   is never sent (the coordinator would accept it unchecked).
//	X8 One commit that can never be published stops nobody else: the batch is sent again without it.
//	X9 A ledger that starts above the floor or ends below it is an error, and so is an entry of another group or topic.
//	X10 Without transactions a commit is entered in the ledger only after all of its outputs are acknowledged (H13): what a
//	   crash leaves in between is published again by the recovery, byte for byte.
//
// Goroutines: Publish runs on its caller's; it starts none. A lane's franz-go client has its own and they end with
// Close. InitFormers starts a bounded number and waits for them.
//
//	pub, err := publish.New(cfg, group, owners)
//	err = pub.Check(ctx)                          // once at start
//	err = pub.InitFormers(ctx, topic, formers)    // inside the assignment callback
//	published, err := pub.Publish(ctx, lane, batch)
package publish
