// What the servers of a store do not allow this client, and what that costs.
import type { Restriction } from "../../../core/backend.ts";
import { UnsupportedError } from "../../../core/errors.ts";
import { redactText } from "../../../core/redact.ts";
import { ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Connection } from "./connection.ts";

/** Command by command: what is lost without it. */
const COSTS = {
  HELLO: "without RESP3 there are no pushes: stamps are read with every entry and the near cache stays off",
  "CLIENT TRACKING":
    "the server refuses to track changed keys: stamps are read with every entry and the near cache stays off",
  "CLIENT KILL": "a write that timed out may still be executed after newer ones",
  INFO: "restarts from old snapshots and failovers go unnoticed, and what they bring back is served",
  TIME: "entries expire by the clock of this process",
  EVAL: "loads take turns with WATCH and MULTI, which need two round trips each",
  WATCH: "with neither scripts nor WATCH nothing can be stored: set() fails and every getOrSet() loads",
  SCAN: "keys cannot be listed: keys(), invalidatePattern() and getStats() fail",
  TOUCH: "a server that evicts may evict stamps that are in use, and entries with them",
} as const;

export type Restricted = keyof typeof COSTS;

/** All servers of a store have the same rules, so what one of them refuses is reported once. */
export class Restrictions {
  readonly #report: (error: Error) => void;
  readonly #found = new Map<Restricted, string>();
  readonly #reported = new Set<Restricted>();

  constructor(report: (error: Error) => void) {
    this.#report = report;
  }

  has(what: Restricted): boolean {
    return this.#found.has(what);
  }

  add(what: Restricted, cause: Error): void {
    const detail = `the store does not allow ${what}: ${COSTS[what]}`;
    this.#found.set(what, detail);
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    const hint = `The server's words: ${redactText(cause.message)}. docs/guide/kv.md lists what to allow.`;
    this.#report(new UnsupportedError(detail, { hint, cause }));
  }

  /** A server allows it, perhaps since its rules were changed. */
  remove(what: Restricted): void {
    this.#found.delete(what);
  }

  list(): readonly Restriction[] {
    return [...this.#found].map(([name, detail]) => ({ name, detail }));
  }
}

/** By its rules, or because the command does not exist there; also from within a script. */
export const isForbidden = (error: unknown): error is ReplyError =>
  error instanceof ReplyError &&
  (error.code === "NOPERM" ||
    /^ERR unknown (command|subcommand)|^ERR .*(unknown redis command|can't run this command)/i.test(
      error.message,
    ));

/** Commands that change nothing and name no key. */
const PROBES: readonly (readonly [Restricted, readonly Argument[]])[] = [
  ["SCAN", ["SCAN", "0", "COUNT", "1"]],
  // No script has this digest: a server that allows it answers NOSCRIPT.
  ["EVAL", ["EVALSHA", "0".repeat(40), "0"]],
  ["EVAL", ["EVAL", "return 1", "0"]],
];

/** Tries what is otherwise only refused when it is needed. Rejects only if the connection is lost. */
export async function probe(connection: Connection, restrictions: Restrictions): Promise<void> {
  const answers = await Promise.allSettled(PROBES.map(([, args]) => connection.command(...args)));
  const refused = new Map<Restricted, Error>();
  for (const [at, answer] of answers.entries())
    if (answer.status === "rejected" && isForbidden(answer.reason))
      refused.set((PROBES[at] as (typeof PROBES)[number])[0], answer.reason);
  for (const what of new Set(PROBES.map(([name]) => name))) {
    const cause = refused.get(what);
    if (cause === undefined) restrictions.remove(what);
    else restrictions.add(what, cause);
  }
}
