// A backend and a collector that have the right parts and do nothing.
import type { Backend } from "../../src/core/backend.ts";
import type { Collector } from "../../src/core/collector.ts";

const never = (): Promise<never> => Promise.reject(new Error("not used"));

export const idleBackend: Backend = {
  name: "idle",
  capabilities: { shared: false, scan: false, ttlResolutionMs: 1 },
  connect: never,
  disconnect: never,
  ping: never,
  now: () => 0,
  clockErrorMs: () => 0,
  read: never,
  readMany: never,
  write: never,
  writeMany: never,
  swap: never,
  take: never,
  takeMany: never,
  scan: () => {
    throw new Error("not used");
  },
  usage: never,
};

export const idleCollector: Collector = { increment() {}, gauge() {}, histogram() {}, timing() {} };
