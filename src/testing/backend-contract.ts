// The contract suite: the rules every backend must follow, as test cases for any runner.
import { binarySafety } from "./contract/binary-safety.ts";
import { cacheBadInput } from "./contract/cache-bad-input.ts";
import { cacheInvalidation } from "./contract/cache-invalidation.ts";
import { cacheLeases } from "./contract/cache-lease.ts";
import { cacheLoads } from "./contract/cache-load.ts";
import { cacheNamespaces } from "./contract/cache-namespace.ts";
import { cacheOperations } from "./contract/cache-operation.ts";
import { cacheOvertaken } from "./contract/cache-overtaken.ts";
import { cacheProcesses } from "./contract/cache-processes.ts";
import { cacheStaleness } from "./contract/cache-stale.ts";
import { cacheValues } from "./contract/cache-value.ts";
import { connection } from "./contract/connection.ts";
import { exchange, sharing } from "./contract/exchange.ts";
import { lifetimes } from "./contract/lifetime.ts";
import { pushing } from "./contract/push.ts";
import { scanning } from "./contract/scan.ts";
import { type ContractGroup, Stage } from "./contract/stage.ts";
import type { ContractRunner, ContractSubject } from "./contract/subject.ts";
import { swapping } from "./contract/swap.ts";
import { requireFlags, requireMethods } from "./test-arguments.ts";

/** Rules for the backend's own operations on records. */
const RECORD_GROUPS: readonly ContractGroup[] = [
  connection,
  exchange,
  swapping,
  lifetimes,
  binarySafety,
  scanning,
  sharing,
  pushing,
];

/** Rules for an XCache that uses the backend. */
const CACHE_GROUPS: readonly ContractGroup[] = [
  cacheOperations,
  cacheValues,
  cacheNamespaces,
  cacheInvalidation,
  cacheLoads,
  cacheStaleness,
  cacheOvertaken,
  cacheLeases,
  cacheProcesses,
  cacheBadInput,
];

/**
 * Registers the suite with a test runner:
 *
 * ```ts
 * import { describe, it } from "node:test";
 * backendContract({ name: "mine", offers: { shared: true, scan: true, push: false }, open }, { describe, it });
 * ```
 *
 * Every case opens the subject, uses unique keys and closes what it opened. A case takes a few seconds at most, even if the
 * store's ttl resolution is a whole second. Failures are AssertionErrors of node:assert. Throws ConfigError for an invalid
 * subject or runner.
 */
export function backendContract(subject: ContractSubject, runner: ContractRunner): void {
  requireMethods("the subject", subject, ["open"]);
  requireFlags("offers", subject.offers, ["shared", "scan", "push"]);
  requireMethods("the runner", runner, ["describe", "it"]);
  runner.describe(`the ${subject.name} backend`, () => {
    for (const group of [...RECORD_GROUPS, ...CACHE_GROUPS]) {
      const cases = group.cases(subject.offers);
      if (cases.length === 0) continue;
      runner.describe(group.name, () => {
        for (const { rule, run } of cases) runner.it(rule, () => Stage.play(subject, run));
      });
    }
  });
}
