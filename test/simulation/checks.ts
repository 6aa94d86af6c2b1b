// What is checked, by name: a schedule that fails is shrunk as long as the same check fails.

export type Check =
  /** Guarantees 2 and 3: what was invalidated is not returned. */
  | "stale read"
  /** An expired entry is not returned by get. */
  | "expired read"
  /** A value belongs to the key it is returned for. */
  | "foreign value"
  /** Guarantee 1: one load per key between invalidations. */
  | "second load"
  /** Guarantee 1: after a load that stored nothing, waiting processes load in parallel. */
  | "loads in turn"
  /** Guarantee 1: a load that never ends blocks its key for `load_limit` at most. */
  | "hanging load"
  /** Guarantee 2: `context.stale` has not been invalidated. */
  | "invalidated context.stale"
  /** Guarantee 3: a set that failed does not undo a later change. */
  | "late set"
  /** Guarantee 3: after failing over and back, when the same server has lost writes. */
  | "lost in a failover"
  /** Guarantee 4: an error reaches every waiter, and none of them loads again. */
  | "load error"
  /** Guarantee 6: no call takes longer than it may. */
  | "overlong call"
  /** Guarantee 6: a store that works again is used again. */
  | "not recovered"
  /** Guarantee 6: what is owed is delivered in the end. */
  | "owed"
  /** Guarantee 6: within a second of the store's return. */
  | "owed for a second"
  /** Guarantee 6: a lost connection is one failure, however many calls were on it. */
  | "one loss, many failures"
  /** Guarantee 6: a connection that was opened again closes the circuit breaker. */
  | "breaker stays open"
  /** A lease is given back when its load has ended. */
  | "lease left"
  /** disconnect() delivers what is owed. */
  | "owed at disconnect"
  /** disconnect() gives leases back. */
  | "lease at disconnect"
  /** After disconnect() no connection is opened. */
  | "reopened"
  /** After disconnect() no timer is set. */
  | "timers left";
