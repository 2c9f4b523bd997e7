------------------------------ MODULE Milepost ------------------------------
(***************************************************************************)
(* The commit protocol of one partition: acquire, prepare, publish,        *)
(* promote, recover.  Workers are paused at will (any step may come late), *)
(* crash, lose answers, and need not notice that the group has given their *)
(* partition away; statements and EndTxn requests arrive late or after     *)
(* their sender has died.  The group's generation begins anew at 1 and is  *)
(* given out twice.                                                        *)
(*                                                                         *)
(* What is modelled, and where it is built:                                *)
(*   Ask .. ReadBack   internal/consumer acquire, commit.Recovery          *)
(*   Prepare, Promote, Persist, WriteFrontier, Release                     *)
(*                     the fenced statements of internal/pgstore           *)
(*   Pick .. Look      internal/publish: lane, epochs, nonces, send, end   *)
(*                                                                         *)
(* A rule of the protocol is switched off by naming it in Broken; run.sh   *)
(* runs the whole protocol, and each broken variant, which must violate    *)
(* the invariant that the rule is there for.                               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Workers,         \* processes; each has one lane
  KeyOf,           \* the raw partition: KeyOf[o] is the key of the record at offset o
  Deferred,        \* mode deferred: publish first, persist later
  GroupValidates,  \* the coordinator refuses offsets of another generation
  MaxEpoch,        \* acquisitions
  MaxGeneration,   \* the group's generations
  MayReset,        \* they begin anew at 1
  MaxFaults,       \* crashes and lost answers together
  Broken           \* names of rules that are switched off

Rules == {"PgFence", "ForUpdate", "EpochNotGeneration", "InitialiseLanes",
          "ReadEpochsAgain", "LaneBeforeEpochs", "NonceATenure", "SettleOwnLane",
          "StableWait", "ReadTheLedger", "ReadBackLostAnswer",
          "PublishBeforePromote", "ContiguousFrontier", "FloorBelowInFlight",
          "ReleaseWhenSettled", "FrontierBelowUnpersisted"}
ASSUME Broken \subseteq Rules
Rule(r) == r \notin Broken

Offsets == 1 .. Len(KeyOf)
Keys    == {KeyOf[o] : o \in Offsets}

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Min(S) == CHOOSE x \in S : \A y \in S : x <= y

VARIABLES
  \* The group.
  generation,  \* as the coordinator has it
  \* Postgres.
  owner,       \* the partition's owner row: epoch, worker, generation, released
  formers,     \* owners that did not release, whose lanes are not known to be settled
  row,         \* row[k]: current revision and prepared revision, 0: none
  frontier,    \* the next offset to do
  floor,       \* the ledger position from which a recovery must read
  sent,        \* sent[w]: the statement of w that is under way
  \* Kafka.
  log,         \* the ledger with its outputs: offset, worker (lane), epoch of the tenure, open, deciding, committed or aborted
  ending,      \* ending[w]: an EndTxn of lane w is under way
  fenced,      \* fenced[w]: another process has initialised w's lane since w did
  \* Workers.
  tenure,      \* tenure[w]: what w believes of its ownership
  mem,         \* mem[w][k]: what w holds of a key
  lane,        \* lane[w]: the lane's client, and the epoch that was read after it was initialised
  pub,         \* pub[w]: the commit that w publishes
  \* Bounds and history.
  faults,
  oldWrite     \* something of an older tenure landed where it must not

postgres == <<owner, formers, row, frontier, floor>>
broker   == <<log, ending, fenced>>
worker   == <<tenure, mem, lane, pub>>
vars     == <<generation, postgres, sent, broker, worker, faults, oldWrite>>

NoTenure == [pc |-> "out", epoch |-> 0, generation |-> 0, highest |-> 0]
NoKey    == [rev |-> 0, durable |-> 0, job |-> 0, st |-> "idle", hold |-> 0]
NoPub    == [st |-> "idle", offset |-> 0, epoch |-> 0, generation |-> 0]
NoStatement == [op |-> "none"]
NoLane   == [client |-> FALSE, read |-> 0]

Init ==
  /\ generation = 1
  /\ owner = [epoch |-> 0, worker |-> "none", generation |-> 0, released |-> FALSE]
  /\ formers = {}
  /\ row = [k \in Keys |-> [rev |-> 0, prep |-> 0]]
  /\ frontier = 1 /\ floor = 1
  /\ sent = [w \in Workers |-> NoStatement]
  /\ log = <<>>
  /\ ending = [w \in Workers |-> FALSE]
  /\ fenced = [w \in Workers |-> FALSE]
  /\ tenure = [w \in Workers |-> NoTenure]
  /\ mem = [w \in Workers |-> [k \in Keys |-> NoKey]]
  /\ lane = [w \in Workers |-> NoLane]
  /\ pub = [w \in Workers |-> NoPub]
  /\ faults = 0 /\ oldWrite = FALSE

(***************************************************************************)
(* The ledger.                                                             *)
(***************************************************************************)
Positions      == 1 .. Len(log)
In(st)         == {p \in Positions : log[p].st = st}
OfLane(w, S)   == {p \in S : log[p].worker = w}
Visible        == In("deciding") \cup In("committed")
CommitsOf(o)   == {p \in Visible : log[p].offset = o}
Published(o)   == CommitsOf(o) # {}

\* The log after the lanes of ws were initialised: what was open is aborted.
Aborted(ws) == [p \in Positions |->
                 IF log[p].worker \in ws /\ log[p].st = "open" THEN [log[p] EXCEPT !.st = "aborted"] ELSE log[p]]

(***************************************************************************)
(* The group.  It says who may ask for the partition.  Nothing rests on    *)
(* its proof: any worker may pass it at any time, as one can whose         *)
(* generation's number was given out again.                                *)
(***************************************************************************)
Numbers ==        \* the generations that an assignment can come with: the next, the same given out twice, or anew from 1
  IF ~GroupValidates /\ Rule("EpochNotGeneration") THEN {generation}
  ELSE {generation} \cup (IF generation < MaxGeneration THEN {generation + 1} ELSE {}) \cup (IF MayReset THEN {1} ELSE {})

Ask(w) ==         \* assigned, or fenced and still assigned: reads the epoch, proves the generation
  /\ tenure[w].pc = "out"
  /\ owner.epoch < MaxEpoch
  /\ generation' \in Numbers
  /\ tenure' = [tenure EXCEPT ![w] = [NoTenure EXCEPT !.pc = "proved", !.epoch = owner.epoch, !.generation = generation']]
  /\ UNCHANGED <<postgres, sent, broker, mem, lane, pub, faults, oldWrite>>

Rejoin(w) ==      \* a zombie gets the current generation and keeps its tenure: no callback has told it (H1)
  /\ GroupValidates
  /\ tenure[w].pc = "run" /\ tenure[w].generation # generation
  /\ tenure' = [tenure EXCEPT ![w].generation = generation]
  /\ UNCHANGED <<generation, postgres, sent, broker, mem, lane, pub, faults, oldWrite>>

(***************************************************************************)
(* Acquisition: swap, settle, initialise lanes, read back.                 *)
(***************************************************************************)
Locked == \E w \in Workers : sent[w].op # "none" /\ sent[w].st = "locked"

Swap(w) ==        \* SELECT .. FOR UPDATE, then e -> e + 1: waits for every statement that has passed the fence (S4)
  /\ tenure[w].pc = "proved"
  /\ IF owner.epoch # tenure[w].epoch
       THEN /\ tenure' = [tenure EXCEPT ![w] = NoTenure]
            /\ UNCHANGED <<owner, formers>>
       ELSE /\ Rule("ForUpdate") => ~Locked
            /\ owner' = [epoch |-> owner.epoch + 1, worker |-> w, generation |-> tenure[w].generation, released |-> FALSE]
            /\ formers' = IF owner.epoch = 0 \/ owner.released THEN formers ELSE formers \cup {owner.worker}
            /\ tenure' = [tenure EXCEPT ![w].pc = "swapped", ![w].epoch = owner.epoch + 1]
  /\ UNCHANGED <<generation, row, frontier, floor, sent, broker, mem, lane, pub, faults, oldWrite>>

\* What w itself had in hand under an older tenure has come to its end (G5, H2).
Settled(w) == pub[w].st = "idle" \/ ~Rule("SettleOwnLane")

InitFormers(w) == \* what was open is aborted, and markers are written, when it returns
  /\ tenure[w].pc = "swapped" /\ Settled(w)
  /\ IF ~Rule("InitialiseLanes")
       THEN UNCHANGED broker
       ELSE LET others == formers \ {w}
                mine   == IF lane[w].client THEN {} ELSE formers \cap {w}  \* of a process that has crashed
                ws     == others \cup mine
            IN /\ \A v \in ws : OfLane(v, In("deciding")) = {}
               /\ log' = Aborted(ws)
               /\ ending' = [v \in Workers |-> IF v \in ws THEN FALSE ELSE ending[v]]
               /\ fenced' = [v \in Workers |-> fenced[v] \/ (v \in others /\ lane[v].client)]
  /\ tenure' = [tenure EXCEPT ![w].pc = "settled"]
  /\ UNCHANGED <<generation, postgres, sent, mem, lane, pub, faults, oldWrite>>

\* What recovery makes of a key: a prepared commit that was published is promoted, one that was not is published.
Recovered(k, published) ==
  LET r    == row[k]
      mine == {o \in published : KeyOf[o] = k /\ o > r.rev}
      base == [NoKey EXCEPT !.rev = r.rev, !.durable = r.rev, !.hold = floor]
  IN CASE r.prep # 0 /\ (r.prep < frontier \/ r.prep \in published) -> [base EXCEPT !.rev = r.prep, !.st = "published"]
       [] r.prep # 0                                               -> [base EXCEPT !.job = r.prep, !.st = "ready"]
       [] mine # {}                                                -> [base EXCEPT !.rev = Max(mine), !.st = "published"]
       [] OTHER                                                    -> [base EXCEPT !.hold = 0]

ReadBack(w) ==    \* waits until no transactional offset is pending, notes the end, reads from the floor to it
  /\ tenure[w].pc = "settled"
  /\ Rule("StableWait") => In("open") \cup In("deciding") = {}
  /\ LET published == IF Rule("ReadTheLedger") THEN {log[p].offset : p \in {q \in In("committed") : q >= floor}} ELSE {}
     IN mem' = [mem EXCEPT ![w] = [k \in Keys |-> IF @[k].st = "ready" THEN @[k] ELSE Recovered(k, published)]]
  /\ tenure' = [tenure EXCEPT ![w].pc = "run", ![w].highest = Len(log)]
  /\ formers' = IF owner.epoch = tenure[w].epoch THEN {} ELSE formers
  /\ UNCHANGED <<generation, owner, row, frontier, floor, sent, broker, lane, pub, faults, oldWrite>>

(***************************************************************************)
(* The end of a tenure: the worker is told, or it crashes.                 *)
(***************************************************************************)
\* With a nonce of the process instead of the tenure, a commit that waits to be published outlives its tenure.
Forget(w) ==
  /\ tenure' = [tenure EXCEPT ![w] = NoTenure]
  /\ mem' = [mem EXCEPT ![w] = [k \in Keys |-> IF ~Rule("NonceATenure") /\ @[k].st = "ready" THEN @[k] ELSE NoKey]]

Lose(w) ==        \* what is being published goes on to its end
  /\ tenure[w].pc # "out"
  /\ Forget(w)
  /\ UNCHANGED <<generation, postgres, sent, broker, lane, pub, faults, oldWrite>>

Crash(w) ==       \* memory goes; requests that are under way still arrive
  /\ tenure[w].pc # "out" \/ pub[w].st # "idle"
  /\ faults < MaxFaults /\ faults' = faults + 1
  /\ tenure' = [tenure EXCEPT ![w] = NoTenure]
  /\ mem' = [mem EXCEPT ![w] = [k \in Keys |-> NoKey]]
  /\ lane' = [lane EXCEPT ![w] = NoLane]
  /\ pub' = [pub EXCEPT ![w] = NoPub]
  /\ fenced' = [fenced EXCEPT ![w] = FALSE]
  /\ UNCHANGED <<generation, postgres, sent, log, ending, oldWrite>>

(***************************************************************************)
(* Statements.  Each begins with the fence and is sent again, the same,    *)
(* until its verdict is known: a lost answer is a late one.                *)
(***************************************************************************)
Send(w, m) ==
  /\ tenure[w].pc = "run" /\ sent[w].op = "none"
  /\ sent' = [sent EXCEPT ![w] = m @@ [epoch |-> tenure[w].epoch, generation |-> tenure[w].generation, st |-> "sent"]]

Next(w, k) == {o \in Offsets : KeyOf[o] = k /\ o > mem[w][k].rev}

Prepare(w, k) ==  \* the next checkpoint and the outputs beside the current row
  /\ ~Deferred
  /\ mem[w][k].st \in {"idle", "published"} /\ Next(w, k) # {}
  /\ LET o == Min(Next(w, k)) IN
     /\ Send(w, [op |-> "prepare", key |-> k, base |-> mem[w][k].rev, offset |-> o])
     /\ mem' = [mem EXCEPT ![w][k].job = o, ![w][k].st = "preparing",
                           ![w][k].hold = IF @ = 0 THEN tenure[w].highest + 1 ELSE @]
  /\ UNCHANGED <<generation, postgres, broker, tenure, lane, pub, faults, oldWrite>>

Decide(w, k) ==   \* mode deferred: published without having been prepared
  /\ Deferred /\ tenure[w].pc = "run"
  /\ mem[w][k].st \in {"idle", "published"} /\ Next(w, k) # {}
  /\ mem' = [mem EXCEPT ![w][k].job = Min(Next(w, k)), ![w][k].st = "ready",
                        ![w][k].hold = IF @ = 0 THEN tenure[w].highest + 1 ELSE @]
  /\ UNCHANGED <<generation, postgres, sent, broker, tenure, lane, pub, faults, oldWrite>>

Promote(w, k) ==
  /\ ~Deferred
  /\ \/ mem[w][k].st = "published" /\ mem[w][k].durable < mem[w][k].rev
     \/ mem[w][k].st = "ready" /\ ~Rule("PublishBeforePromote")
  /\ Send(w, [op |-> "promote", key |-> k, offset |-> IF mem[w][k].st = "ready" THEN mem[w][k].job ELSE mem[w][k].rev])
  /\ UNCHANGED <<generation, postgres, broker, worker, faults, oldWrite>>

Persist(w, k) ==
  /\ Deferred /\ mem[w][k].durable < mem[w][k].rev
  /\ Send(w, [op |-> "persist", key |-> k, base |-> mem[w][k].durable, offset |-> mem[w][k].rev])
  /\ UNCHANGED <<generation, postgres, broker, worker, faults, oldWrite>>

Done(w, o) ==     \* published; in mode deferred also persisted
  IF Deferred /\ Rule("FrontierBelowUnpersisted") THEN o <= mem[w][KeyOf[o]].durable ELSE o <= mem[w][KeyOf[o]].rev

NextFrontier(w) ==
  IF Rule("ContiguousFrontier")
    THEN Min({o \in Offsets : ~Done(w, o)} \cup {Len(KeyOf) + 1})
    ELSE Max({o \in Offsets : Done(w, o)} \cup {0}) + 1

NextFloor(w) ==   \* never the log's end: what is in flight may land below it (H4)
  IF Rule("FloorBelowInFlight")
    THEN Min({mem[w][k].hold : k \in {j \in Keys : mem[w][j].hold # 0}} \cup {tenure[w].highest + 1})
    ELSE Len(log) + 1

WriteFrontier(w) ==   \* one statement for both, when the frontier moves
  /\ NextFrontier(w) > frontier
  /\ Send(w, [op |-> "frontier", frontier |-> NextFrontier(w), floor |-> NextFloor(w)])
  /\ UNCHANGED <<generation, postgres, broker, worker, faults, oldWrite>>

Release(w) ==     \* after a clean drain only: no transaction of ours is open, none can be composed
  /\ ~owner.released
  /\ Rule("ReleaseWhenSettled") => pub[w].st = "idle" /\ \A k \in Keys : mem[w][k].job = 0 /\ mem[w][k].durable = mem[w][k].rev
  /\ Send(w, [op |-> "release"])
  /\ Forget(w)
  /\ UNCHANGED <<generation, postgres, broker, lane, pub, faults, oldWrite>>

Holds(m) ==       \* the fence
  \/ ~Rule("PgFence")
  \/ Rule("EpochNotGeneration") /\ m.epoch = owner.epoch
  \/ ~Rule("EpochNotGeneration") /\ m.generation = owner.generation

Lock(w) ==        \* FOR KEY SHARE of the owner row; a separate step only where the swap does not wait for it
  /\ ~Rule("ForUpdate")
  /\ sent[w].op # "none" /\ sent[w].st = "sent" /\ Holds(sent[w])
  /\ sent' = [sent EXCEPT ![w].st = "locked"]
  /\ UNCHANGED <<generation, postgres, broker, worker, faults, oldWrite>>

Stands(r) == IF r.prep # 0 THEN r.prep ELSE r.rev

Apply(m) ==       \* the statement's effect on the rows
  CASE m.op = "prepare" ->
         /\ row' = IF Stands(row[m.key]) = m.base THEN [row EXCEPT ![m.key] = [rev |-> m.base, prep |-> m.offset]] ELSE row
         /\ UNCHANGED <<owner, frontier, floor>>
    [] m.op = "promote" ->
         /\ row' = IF row[m.key].prep = m.offset THEN [row EXCEPT ![m.key] = [rev |-> m.offset, prep |-> 0]] ELSE row
         /\ UNCHANGED <<owner, frontier, floor>>
    [] m.op = "persist" ->
         /\ row' = IF row[m.key].prep = 0 /\ row[m.key].rev = m.base THEN [row EXCEPT ![m.key].rev = m.offset] ELSE row
         /\ UNCHANGED <<owner, frontier, floor>>
    [] m.op = "frontier" ->
         /\ frontier' = Max({frontier, m.frontier}) /\ floor' = Max({floor, m.floor})
         /\ UNCHANGED <<owner, row>>
    [] m.op = "release" ->
         /\ owner' = [owner EXCEPT !.released = TRUE]
         /\ UNCHANGED <<row, frontier, floor>>

Clean(x) == IF x.durable = x.rev /\ x.job = 0 THEN [x EXCEPT !.st = "idle", !.hold = 0] ELSE x

Answered(w, m) == \* what the verdict tells its sender; by then the rows are as Apply left them
  CASE m.op = "prepare" /\ Stands(row'[m.key]) = m.offset ->
         mem' = [mem EXCEPT ![w][m.key].st = "ready", ![w][m.key].durable = m.base] /\ UNCHANGED tenure
    [] m.op = "promote" /\ mem[w][m.key].st = "published" ->
         mem' = [mem EXCEPT ![w][m.key] = Clean([@ EXCEPT !.durable = Max({@, m.offset})])] /\ UNCHANGED tenure
    [] m.op = "persist" /\ row'[m.key].rev = m.offset ->
         mem' = [mem EXCEPT ![w][m.key] = Clean([@ EXCEPT !.durable = Max({@, m.offset})])] /\ UNCHANGED tenure
    [] m.op \in {"prepare", "persist"} -> Forget(w)   \* a conflict: everything is read again
    [] OTHER -> UNCHANGED <<tenure, mem>>

Land(w) ==        \* a statement reaches Postgres, at once or late, from the living or the dead
  /\ sent[w].op # "none"
  /\ LET m == sent[w]
         passes == IF Rule("ForUpdate") THEN Holds(m) ELSE m.st = "locked"
     IN /\ IF passes
             THEN Apply(m) /\ oldWrite' = (oldWrite \/ m.epoch # owner.epoch)
             ELSE ~Holds(m) /\ UNCHANGED <<owner, row, frontier, floor, oldWrite>>
        /\ IF tenure[w].pc = "run" /\ tenure[w].epoch = m.epoch
             THEN IF passes THEN Answered(w, m) ELSE Forget(w)
             ELSE UNCHANGED <<tenure, mem>>
  /\ sent' = [sent EXCEPT ![w] = NoStatement]
  /\ UNCHANGED <<generation, formers, broker, lane, pub, faults>>

Vanish(w) ==      \* nobody waits for it any more, and it never arrives
  /\ sent[w].op # "none" /\ tenure[w].epoch # sent[w].epoch
  /\ sent[w].st = "sent"
  /\ sent' = [sent EXCEPT ![w] = NoStatement]
  /\ UNCHANGED <<generation, postgres, broker, worker, faults, oldWrite>>

(***************************************************************************)
(* Publication: lane -> epochs -> generation -> nonces -> send -> end, the *)
(* same on every retry (X1).                                               *)
(***************************************************************************)
Ready(w) == {k \in Keys : mem[w][k].st = "ready"}

InitLane(w) ==    \* a new client; what the lane had open is aborted, what was decided has its markers
  /\ ~lane[w].client
  /\ \/ tenure[w].pc = "run" /\ pub[w].st = "idle" /\ Ready(w) # {}
     \/ pub[w].st = "unknown"
     \/ pub[w].st = "checked"   \* only where the lane is chosen after the checks
  /\ OfLane(w, In("deciding")) = {}
  /\ log' = Aborted({w})
  /\ ending' = [ending EXCEPT ![w] = FALSE]
  /\ fenced' = [fenced EXCEPT ![w] = FALSE]
  /\ lane' = [lane EXCEPT ![w] = [client |-> TRUE, read |-> IF Rule("LaneBeforeEpochs") THEN 0 ELSE @.read]]
  /\ UNCHANGED <<generation, postgres, sent, tenure, mem, pub, faults, oldWrite>>

ReadEpochs(w) ==  \* after the lane was initialised, before its first transaction of the tenure
  /\ tenure[w].pc = "run" /\ pub[w].st = "idle" /\ Ready(w) # {}
  /\ Rule("LaneBeforeEpochs") => lane[w].client
  /\ lane[w].read # tenure[w].epoch
  /\ IF tenure[w].epoch = owner.epoch \/ ~Rule("ReadEpochsAgain")
       THEN lane' = [lane EXCEPT ![w].read = tenure[w].epoch] /\ UNCHANGED <<tenure, mem>>
       ELSE Forget(w) /\ UNCHANGED lane
  /\ UNCHANGED <<generation, postgres, sent, broker, pub, faults, oldWrite>>

Check(w, k) ==    \* the generation, then the nonces: nothing of a tenure that w knows to be over goes on
  /\ tenure[w].pc = "run" /\ pub[w].st = "idle" /\ k \in Ready(w)
  /\ Rule("LaneBeforeEpochs") => lane[w].client
  /\ lane[w].read = tenure[w].epoch
  /\ pub' = [pub EXCEPT ![w] = [st |-> "checked", offset |-> mem[w][k].job, epoch |-> tenure[w].epoch, generation |-> tenure[w].generation]]
  /\ UNCHANGED <<generation, postgres, sent, broker, tenure, mem, lane, faults, oldWrite>>

Compose(w) ==     \* outputs, ledger record, offsets: all are acknowledged, and EndTxn goes out; or the client is thrown away
  /\ pub[w].st = "checked" /\ lane[w].client
  /\ IF fenced[w] \/ (GroupValidates /\ pub[w].generation # generation)
       THEN /\ lane' = [lane EXCEPT ![w].client = FALSE]
            /\ pub' = [pub EXCEPT ![w] = NoPub]
            /\ UNCHANGED <<log, ending>>
       ELSE /\ log' = Append(log, [offset |-> pub[w].offset, worker |-> w, epoch |-> pub[w].epoch, st |-> "open"])
            /\ pub' = [pub EXCEPT ![w].st = "ending"]
            /\ ending' = [ending EXCEPT ![w] = TRUE]
            /\ UNCHANGED lane
  /\ UNCHANGED <<generation, postgres, sent, fenced, tenure, mem, faults, oldWrite>>

Newer(e) == \E v \in Workers : tenure[v].pc = "run" /\ tenure[v].epoch > e

EndArrives(w) ==  \* the coordinator decides; a tenure whose ledger a newer one has read back must not get here
  /\ ending[w]
  /\ ending' = [ending EXCEPT ![w] = FALSE]
  /\ log' = [p \in Positions |-> IF p \in OfLane(w, In("open")) THEN [log[p] EXCEPT !.st = "deciding"] ELSE log[p]]
  /\ oldWrite' = (oldWrite \/ \E p \in OfLane(w, In("open")) : Newer(log[p].epoch))
  /\ UNCHANGED <<generation, postgres, sent, fenced, worker, faults>>

Marker(w) ==      \* readers of committed records see it from here on
  /\ OfLane(w, In("deciding")) # {}
  /\ log' = [p \in Positions |-> IF p \in OfLane(w, In("deciding")) THEN [log[p] EXCEPT !.st = "committed"] ELSE log[p]]
  /\ UNCHANGED <<generation, postgres, sent, ending, fenced, worker, faults, oldWrite>>

\* The position of the record in hand: its lane's newest. Older ones of the lane are decided.
Own(w) == Max(OfLane(w, Positions))

WasPublished(w) ==
  /\ pub' = [pub EXCEPT ![w] = NoPub]
  /\ LET k == KeyOf[pub[w].offset] IN
     IF tenure[w].pc = "run" /\ tenure[w].epoch = pub[w].epoch /\ mem[w][k].job = pub[w].offset
       THEN /\ mem' = [mem EXCEPT ![w][k].rev = pub[w].offset, ![w][k].job = 0, ![w][k].st = "published"]
            /\ tenure' = [tenure EXCEPT ![w].highest = Max({@, Own(w)})]
       ELSE UNCHANGED <<mem, tenure>>

Success(w) ==
  /\ pub[w].st = "ending" /\ ~ending[w] /\ Own(w) \in Visible
  /\ WasPublished(w)
  /\ UNCHANGED <<generation, postgres, sent, broker, lane, faults, oldWrite>>

Unknown(w) ==     \* an error, or no answer at all: anything but success is unknown, and the client is thrown away (X4, X5)
  /\ pub[w].st = "ending"
  /\ IF fenced[w] THEN UNCHANGED faults ELSE faults < MaxFaults /\ faults' = faults + 1
  /\ lane' = [lane EXCEPT ![w].client = FALSE]
  /\ pub' = [pub EXCEPT ![w] = IF Rule("ReadBackLostAnswer") THEN [@ EXCEPT !.st = "unknown"] ELSE NoPub]
  /\ UNCHANGED <<generation, postgres, sent, broker, tenure, mem, oldWrite>>

Look(w) ==        \* the lane is initialised: our own ledger record is there for a reader of committed ones, or it is not
  /\ pub[w].st = "unknown" /\ lane[w].client
  /\ IF Own(w) \in Visible
       THEN WasPublished(w)
       ELSE pub' = [pub EXCEPT ![w] = NoPub] /\ UNCHANGED <<tenure, mem>>
  /\ UNCHANGED <<generation, postgres, sent, broker, lane, faults, oldWrite>>

(***************************************************************************)
Step(w) ==
  \/ Ask(w) \/ Rejoin(w) \/ Swap(w) \/ InitFormers(w) \/ ReadBack(w)
  \/ Lose(w) \/ Crash(w)
  \/ \E k \in Keys : Prepare(w, k) \/ Decide(w, k) \/ Promote(w, k) \/ Persist(w, k) \/ Check(w, k)
  \/ WriteFrontier(w) \/ Release(w) \/ Lock(w) \/ Land(w) \/ Vanish(w)
  \/ InitLane(w) \/ ReadEpochs(w) \/ Compose(w)
  \/ EndArrives(w) \/ Marker(w) \/ Success(w) \/ Unknown(w) \/ Look(w)

Spec == Init /\ [][\E w \in Workers : Step(w)]_vars

Symmetry == Permutations(Workers)

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
\* No observation's outputs are visible twice.
AtMostOneEffect == \A o \in Offsets : Cardinality(CommitsOf(o)) <= 1

\* What a row or the frontier says is done was published.
NoLostOutput ==
  /\ \A k \in Keys : \A o \in Offsets : KeyOf[o] = k /\ o <= row[k].rev => Published(o)
  /\ \A o \in Offsets : o < frontier => Published(o)

\* No statement of an older epoch changes a row, no transaction of a tenure commits after a newer one has read the ledger.
NoOldFenceWrite == ~oldWrite

\* Below the frontier everything is durable in its key's row.
FrontierContiguous == \A o \in Offsets : o < frontier => Stands(row[KeyOf[o]]) >= o

\* The outputs of a key are visible in the order of its observations.
OrderPerKey == \A p, q \in Visible : p < q /\ KeyOf[log[p].offset] = KeyOf[log[q].offset] => log[p].offset <= log[q].offset

(***************************************************************************)
(* What must be reachable: each is the negation of something that the      *)
(* model would be worthless without, and TLC must refute it.               *)
(***************************************************************************)
AllDone == frontier = Len(KeyOf) + 1 /\ \A k \in Keys : row[k].prep = 0

NeverAllDone             == ~(AllDone /\ faults = MaxFaults)
NeverAllDoneByTwo        == ~(AllDone /\ Cardinality({log[p].worker : p \in Visible}) = 2)
\* A zombie's transaction, composed before it was fenced, commits after the swap and is found by the read-back.
NeverPublishedByFormer   == ~(\E w \in Workers, k \in Keys : tenure[w].pc = "run" /\ mem[w][k].st = "published"
                                /\ \E p \in CommitsOf(mem[w][k].rev) : log[p].epoch < tenure[w].epoch)
NeverFinishedForFormer   == ~(\E w \in Workers : tenure[w].pc = "run" /\ pub[w].st = "ending"
                                /\ \E p \in In("aborted") : log[p].offset = pub[w].offset /\ log[p].worker # w)
NeverGenerationTwice     == ~(\E v, w \in Workers : v # w /\ tenure[v].pc = "run" /\ tenure[w].pc = "run"
                                /\ tenure[v].generation = tenure[w].generation /\ tenure[v].epoch # tenure[w].epoch)
NeverZombieWithNewLane   == ~(\E w \in Workers : tenure[w].pc = "run" /\ tenure[w].epoch < owner.epoch
                                /\ Ready(w) # {} /\ lane[w].client /\ lane[w].read = 0)
NeverLateStatement       == ~(\E w \in Workers : sent[w].op # "none" /\ sent[w].epoch < owner.epoch /\ frontier > 1)
=============================================================================
