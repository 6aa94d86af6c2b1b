// Mutations of the sources: each takes out one protective line, and the simulation must notice.

/** What is replaced occurs exactly once in its file. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  /** What the sources do wrong with it. */
  readonly name: string;
  readonly patches: readonly Patch[];
}

const ADMISSION = "src/core/shared/lease-admission.ts";
const TICKET = "src/core/shared/lease-ticket.ts";
const LOADER = "src/core/loading/loader.ts";
const NAMESPACE = "src/core/shared/shared-namespace.ts";
const STAMPS = "src/core/invalidation/namespace-stamps.ts";
const OUTBOX = "src/core/invalidation/outbox.ts";
const FAILOVER = "src/core/invalidation/failover.ts";
const NODE = "src/backends/kv/server/node.ts";

const one = (name: string, file: string, find: string, replace: string): Mutation => ({
  name,
  patches: [{ file, find, replace }],
});

export const MUTATIONS: readonly Mutation[] = [
  one(
    "context.stale is what the caller saw before it waited for a lease",
    ADMISSION,
    "return behind === undefined\n        ? { ticket }",
    "return behind === undefined || options.seen !== undefined\n        ? { ticket, stale: options.seen }",
  ),
  one(
    "context.stale is handed in although it was invalidated while the lease was taken",
    ADMISSION,
    "if (!(await leases.hasStamps(behind))) return undefined;",
    "",
  ),
  one(
    "context.stale is handed in although its own process has replaced it meanwhile",
    ADMISSION,
    "if (leases.changes.touched(key, tags, since)) return undefined;",
    "void since;",
  ),
  one(
    "disconnect() closes connections that changes are on their way over",
    "src/core/shared/shared-store.ts",
    "await idle;",
    "void idle;",
  ),
  one(
    "an older state of the server that arrives late counts as lost writes",
    NODE,
    "isOvertaken(facts, this.info, known) ? this.info : facts",
    "(void known, facts)",
  ),
  one(
    "the stamps of a load live only as long as its entry",
    ADMISSION,
    "entry.ttlMs + entry.staleMs + loadMs",
    "(void loadMs, entry.ttlMs + entry.staleMs)",
  ),
  one(
    "a lost connection is not ended on the server",
    "src/backends/kv/server/preparation.ts",
    'await connection.command("CLIENT", "KILL", "ID", String(clientId));',
    "",
  ),
  one(
    "a scan may look through another server than the one in use",
    "src/backends/kv/server/separate-connections.ts",
    "if (facts.runId !== runId || names.some((name) => name !== connection.name))\n      throw notInUse(connection.name);",
    "",
  ),
  one(
    "what a server answers after its data was replaced is served",
    NODE,
    "connection.sendDoubting(ROLE, this.#roleOf(connection));",
    "connection.send(ROLE, this.#roleOf(connection));",
  ),
  {
    name: "the replication history is not compared",
    patches: [
      {
        file: FAILOVER,
        find: "(!isNew || isNotedHistory(note, server.history))",
        replace: "(!isNew || isNotedHistory(note, undefined))",
      },
      {
        file: FAILOVER,
        find: "return later.id === earlier.id ? later.offset >= earlier.offset : continues(later, earlier);",
        replace: "return true;",
      },
    ],
  },
  one(
    "disconnect() does not deliver what is owed",
    "src/cache/lifecycle.ts",
    "if (isLast) owed.push(store.settle?.());",
    "",
  ),
  one(
    "disconnect() keeps the leases of running loads",
    LOADER,
    "await admission?.ticket?.abandon();",
    "void admission;",
  ),
  one(
    "a lease is renewed without a limit",
    TICKET,
    "this.#limit = this.#provenAt + limitMs;",
    "this.#limit = this.#provenAt + limitMs * 1_000_000;",
  ),
  one(
    "each call on a lost connection counts for the circuit breaker",
    "src/core/breaker.ts",
    'if (kind === "call") return false;',
    'if (kind !== "attempt") return false;',
  ),
  one(
    "a new connection does not close the circuit breaker",
    "src/core/breaker.ts",
    'if (this.#state === "closed" || this.#isOnTrial) return;',
    "if (!this.#isOnTrial || this.#isOnTrial) return;",
  ),
  one(
    "what is owed waits for the next call",
    "src/core/invalidation/delivery.ts",
    "if (this.#isStopped || this.#outbox.size === 0) return;",
    "if (!this.#isStopped || this.#outbox.size === 0) return;",
  ),
  one(
    "a result is stored whatever is in the place of its lease",
    TICKET,
    "await entries.swap(key, version, entry, entry.created)",
    "await entries.swap(key, (await this.#leases.read(key))?.version, entry, entry.created)",
  ),
  one(
    "a lease is not given back",
    TICKET,
    "return entries.swap(key, version, left, undefined, keptMs).then(",
    "return Promise.resolve([entries, key, version, left, keptMs]).then(",
  ),
  one(
    "a lease keeps no other process from loading",
    ADMISSION,
    "if (!lock || follows(found, awaited)) {",
    "if (lock || follows(found, awaited)) {",
  ),
  one(
    "a waiter waits for one failed load after another",
    ADMISSION,
    "if (!lock || follows(found, awaited)) {",
    "if (!lock) {",
  ),
  one(
    "an entry gets the tag stamps from the end of its load",
    TICKET,
    "id: atStart.get(tag) ?? id }",
    "id }",
  ),
  one(
    "an entry gets the namespace stamp from the end of its load",
    TICKET,
    "options, { namespaceStamps, tags });",
    "options, { ...(await this.#leases.stampsFor([], options.ttlMs)), tags });",
  ),
  one(
    "late tags are taken without a look at their groups",
    TICKET,
    "if (!(await this.areCurrent(options.tags))) return undefined;",
    "",
  ),
  one(
    "a renewal ignores that its lease is gone",
    TICKET,
    "if (!renewed) this.#overtaken();",
    "if (!renewed) this.#renewLater();",
  ),
  one(
    "a load is joined although something it depends on has changed",
    LOADER,
    "if (this.#changes.touched(key, tags, since)) return true;",
    "",
  ),
  one(
    "callers of one process do not share a load",
    LOADER,
    "if (this.#isOvertaken(key, present)) return undefined;",
    "if (this.#isOvertaken(key, present) || present.since >= 0) return undefined;",
  ),
  one(
    "joined callers do not ask whether late tags were invalidated",
    LOADER,
    "const verdict = loaded.isNewEnough && (await call.untilHard(loaded.isNewEnough(calledAt)));",
    'const verdict: string = calledAt < 0 ? "unknown" : "";',
  ),
  one(
    "a changed entry stays in the near tier of its process",
    NAMESPACE,
    "    this.changes.key(key);\n    this.#near?.drop(key, this.names.entry(key));",
    "    this.changes.key(key);",
  ),
  one(
    "an invalidated tag keeps the stamp of its group",
    STAMPS,
    "groups.map((group) => this.#book.replace(",
    "groups.slice(1).map((group) => this.#book.replace(",
  ),
  one(
    "a missing stamp counts as the present one",
    STAMPS,
    "return expected.every(([, id], at) => present[at] === id);",
    "return expected.every(([, id], at) => (present[at] ?? id) === id);",
  ),
  one(
    "a dead entry is served",
    "src/core/shared/entries.ts",
    "if (await this.#stamps.isLive(entry)) return entry;",
    "if (entry !== undefined) return entry;",
  ),
  one(
    "an expired entry is served",
    "src/core/invalidation/liveness.ts",
    "return leftMs === undefined ? !backend.mayHaveReached(entry.expires) : leftMs > 0;",
    "return entry.expires > 0 || leftMs !== undefined;",
  ),
  one(
    "a reply is kept although its key changed on the way",
    "src/core/invalidation/inflight-reads.ts",
    "return !hasChanged && read.epoch !== 0",
    "return (hasChanged || true) && read.epoch !== 0",
  ),
  one(
    "what was kept stays over a lost connection",
    NODE,
    "        this.#host.changed(undefined);\n        this.#host.down(",
    "        this.#host.down(",
  ),
  one(
    "pushes are trusted long after the last answer",
    NODE,
    "const TRUST_MS = 1_000;",
    "const TRUST_MS = 60_000;",
  ),
  one(
    "a pushed stamp is not forgotten",
    "src/core/shared/shared-store.ts",
    "      this.stamps.forget(key);\n      for (const listener",
    "      for (const listener",
  ),
  one(
    "a change that failed is forgotten",
    "src/core/shared/shared-store.ts",
    "this.#outbox.add(pending());\n    this.#delivery.later();",
    "pending();\n    this.#delivery.later();",
  ),
  one(
    "what is pending is not delivered before its key is used",
    OUTBOX,
    "if (this.#pending.size === 0) return undefined;\n    const pending = keys",
    "if (this.#pending.size >= 0) return undefined;\n    const pending = keys",
  ),
  {
    name: "too many pending invalidations are dropped",
    patches: [
      { file: OUTBOX, find: "const MAX_PENDING = 10_000;", replace: "const MAX_PENDING = 0;" },
      {
        file: OUTBOX,
        find: "this.#enqueue({ key: root, stampMs: Number.POSITIVE_INFINITY, root });",
        replace: "void root;",
      },
    ],
  },
  one(
    "the namespace stamp is kept after a restart",
    FAILOVER,
    "if (!isTrusted) await this.#replaceStamps([namespace], server);",
    "",
  ),
  one(
    "invalidations are not repeated after a failover",
    FAILOVER,
    "else await this.#redeliver(invalidations, server);",
    "",
  ),
  one(
    "the circuit breaker never closes",
    "src/core/breaker.ts",
    'this.#change("closed");',
    'this.#change("open");',
  ),
  one(
    "stamps are spread over the connections",
    "src/backends/wire/pool.ts",
    "connections === 1 || isOwnRecord(key) ? 0 :",
    "connections === 1 ? 0 :",
  ),
  one(
    "the pushes of all connections are trusted if the last one answers",
    NODE,
    "provenAt = Math.min(provenAt, connection.provenAt);",
    "({ provenAt } = connection);",
  ),
  one(
    "other connections stay with a server that was replaced",
    NODE,
    "for (const other of this.#links) if (other !== link) other.renew(reason);",
    "void [link, reason];",
  ),
  one(
    "a change that a failover interrupts is not repeated",
    NAMESPACE,
    "if (this.#store.failovers !== failovers) this.#store.interrupted(pending);",
    "void failovers;",
  ),
  one(
    "a process that begins beside another one takes the store for an older one",
    FAILOVER,
    "if (isUsed) note = noteIn(await records.read(key));",
    "",
  ),
];
