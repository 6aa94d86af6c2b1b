// Default options for opening a cluster server, with callbacks that do nothing.
import type { NodeHost } from "../../../src/backends/kv/server/node.ts";
import { Restrictions } from "../../../src/backends/kv/server/restrictions.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";

export interface NodeHostOptions {
  readonly clock?: Clock;
  readonly operationTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
}

export function nodeHost({
  clock = systemClock,
  operationTimeoutMs = 2_000,
  connectTimeoutMs = 2_000,
}: NodeHostOptions = {}): NodeHost {
  return {
    clock,
    poolSize: 1,
    settings: {
      tls: undefined,
      database: 0,
      clock,
      connectTimeoutMs,
      operationTimeoutMs,
      readsTogether: false,
    },
    watchesMost: true,
    onServer: async () => {},
    changed: () => {},
    down: () => {},
    restrictions: new Restrictions(() => {}),
    report: () => {},
  };
}
