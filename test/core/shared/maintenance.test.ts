// Periodic maintenance of a store in use does not judge its health: only an answer closes its circuit, and only calls
// open it.
import { expect, test } from "vitest";
import type { BackendHost, Capabilities, KeyedRecord } from "../../../src/core/backend.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import type { StoreRecord } from "../../../src/core/record.ts";
import { ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

const TERMS = { ttlMs: 3_600_000, staleMs: 0, tags: [] };
const UPKEEP_MS = 5_000;

/** A store that can be unreachable, or far away. */
class Distant extends ReferenceBackend {
  host: BackendHost | undefined;
  isDown = false;
  delayMs = 0;
  override readonly capabilities: Capabilities = {
    shared: true,
    scan: true,
    ttlResolutionMs: 1,
    replicated: true,
  };

  open(host: BackendHost): void {
    this.host = host;
  }

  /** The reference must not be used afterwards. */
  override async disconnect(): Promise<void> {}

  override async ping(): Promise<void> {
    await this.#reach();
    await super.ping();
  }

  override async read(key: string): Promise<StoreRecord | undefined> {
    await this.#reach();
    return super.read(key);
  }

  override async write(item: KeyedRecord): Promise<void> {
    await this.#reach();
    return super.write(item);
  }

  override async take(key: string): Promise<StoreRecord | undefined> {
    await this.#reach();
    return super.take(key);
  }

  override async takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    await this.#reach();
    return super.takeMany(keys);
  }

  async #reach(): Promise<void> {
    if (this.isDown) throw new ConnectionError("refused");
    if (this.delayMs > 0) await new Promise<void>((resolve) => this.store.clock.after(this.delayMs, resolve));
  }
}

function setUp(failureThreshold: number) {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const backend = new Distant(shared);
  const store = openSharedStore(backend, clock, failureThreshold);
  return { clock, shared, backend, store, space: store.namespace("p") };
}

test("the circuit of a store that is down stays open, and closes once it is back, with what is owed delivered", async () => {
  const { clock, shared, backend, store, space } = setUp(2);
  await space.set("k", 1, TERMS);
  backend.isDown = true;
  for (let call = 0; call < 2; call++) await expect(space.delete(["k"])).rejects.toThrow("refused");
  for (let round = 0; round < 3; round++) {
    await clock.advance(UPKEEP_MS);
    expect(store.breaker.state).toBe("open");
  }
  expect(shared.keys()).toContain("p:k");
  backend.isDown = false;
  await clock.advance(UPKEEP_MS);
  expect(store.breaker.state).toBe("closed");
  expect(shared.keys()).not.toContain("p:k");
});

test("many namespaces on a distant store do not open its circuit", async () => {
  const { clock, backend, store, space } = setUp(1);
  for (let at = 0; at < 60; at++) store.namespace(`p${at}`);
  await backend.host?.onServer({
    anchor: "",
    runId: "run",
    startedAt: 0,
    lastProvenAt: 0,
    records: backend,
    owns: () => true,
  });
  await space.set("k", 1, TERMS);
  backend.delayMs = 20;
  for (let step = 0; step < 200; step++) {
    await clock.advance(100);
    await settle();
    expect(store.breaker.state).toBe("closed");
  }
});

test("what is owed when a cache is disconnected is delivered once it is connected again, without a call", async () => {
  const { clock, shared, backend, store, space } = setUp(100);
  await space.set("k", 1, TERMS);
  backend.isDown = true;
  await expect(space.delete(["k"])).rejects.toThrow("refused");
  await store.disconnect();
  await clock.advance(2 * UPKEEP_MS);
  backend.isDown = false;
  await store.connect();
  await clock.advance(UPKEEP_MS);
  expect(shared.keys()).not.toContain("p:k");
});
