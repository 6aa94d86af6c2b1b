// How a store handles its servers: one that is unreachable when a namespace is opened, one that is replaced just then,
// one that has no room for a stamp.
import { expect, test } from "vitest";
import type { BackendHost, Capabilities, ConnectedServer, KeyedRecord } from "../../../src/core/backend.ts";
import { BackendError, ConnectionError } from "../../../src/core/errors.ts";
import type { Namespace } from "../../../src/core/namespace.ts";
import type { StoreRecord } from "../../../src/core/record.ts";
import { markTransient } from "../../../src/core/resilience/store-failure.ts";
import type { SharedStore } from "../../../src/core/shared/shared-store.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import { settle } from "../../../src/testing/manual-clock.ts";
import { Gate } from "../../behaviour/cache/gate.ts";
import { moment } from "../../support/moment.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

const ANCHOR = "{far}";

/** Two servers: what ends with the anchor is on the far one. */
class TwoServers extends ReferenceBackend {
  host: BackendHost | undefined;
  farFails: Error | undefined;

  open(host: BackendHost): void {
    this.host = host;
  }

  override async read(key: string): Promise<StoreRecord | undefined> {
    if (this.farFails !== undefined && key.endsWith(ANCHOR)) throw this.farFails;
    return super.read(key);
  }

  far(): ConnectedServer {
    return {
      anchor: ANCHOR,
      runId: "run",
      startedAt: this.now() - 60_000,
      lastProvenAt: 0,
      records: this,
      owns: (key) => key.endsWith(ANCHOR),
    };
  }
}

async function openStore(): Promise<{ backend: TwoServers; store: SharedStore }> {
  const clock = new ManualClock();
  const backend = new TwoServers(new ReferenceStore(clock));
  const store = openSharedStore(backend, clock);
  await backend.host?.onServer(backend.far());
  return { backend, store };
}

const use = async (space: Namespace): Promise<void> => {
  await space.set("k", 1, { ttlMs: 60_000, staleMs: 0, tags: [] });
};

test("a namespace can be used while a server that was met before is unreachable", async () => {
  const { backend, store } = await openStore();
  await use(store.namespace("first"));
  backend.farFails = new ConnectionError("gone");
  await expect(use(store.namespace("second"))).resolves.toBeUndefined();
});

test("a namespace is not used while a reachable server cannot be compared with", async () => {
  const { backend, store } = await openStore();
  for (const answer of [
    new BackendError("STORE_FAILED", "no"),
    markTransient(new ConnectionError("not now")),
  ]) {
    backend.farFails = answer;
    await expect(use(store.namespace("first"))).rejects.toThrow(answer.message);
  }
  backend.farFails = undefined;
  await expect(use(store.namespace("first"))).resolves.toBeUndefined();
});

/** A server that comes back from a snapshot; nothing is answered until it has been met. */
class Restarting extends ReferenceBackend {
  override readonly capabilities: Capabilities = {
    shared: true,
    scan: true,
    ttlResolutionMs: 1,
    replicated: true,
  };
  host: BackendHost | undefined;
  /** How long the server has been running when it is met. */
  ageMs = 1_000;
  #meeting: Promise<void> | undefined;

  open(host: BackendHost): void {
    this.host = host;
  }

  /** Keys of this namespace are answered once it resolves. */
  slow: { readonly prefix: string; readonly until: Promise<void> } | undefined;

  override async read(key: string): Promise<StoreRecord | undefined> {
    await this.#meeting;
    if (this.slow !== undefined && key.startsWith(this.slow.prefix)) await this.slow.until;
    return super.read(key);
  }

  async meet(runId: string, isAnswering: Promise<void> = Promise.resolve()): Promise<void> {
    this.#meeting = this.host?.onServer({
      anchor: "",
      runId,
      startedAt: this.now() - this.ageMs,
      lastProvenAt: this.now(),
      records: {
        now: () => this.now(),
        write: (item) => super.write(item),
        take: (key) => super.take(key),
        read: async (key) => {
          await isAnswering;
          return super.read(key);
        },
      },
      owns: () => true,
    });
    await this.#meeting;
    this.#meeting = undefined;
  }
}

test("a namespace opened while a restored server is being met is compared with it too", async () => {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const [mine, theirs] = [new Restarting(shared), new Restarting(shared)];
  const [store, otherStore] = [openSharedStore(mine, clock), openSharedStore(theirs, clock)];
  for (const backend of [mine, theirs]) await backend.meet("before");
  const cleared = otherStore.namespace("second");
  await use(cleared);
  const snapshot = shared.snapshot();
  await cleared.clear();
  await use(store.namespace("first"));
  await clock.advance(30_000);
  shared.restart(snapshot);
  const answer = moment();
  const meeting = mine.meet("after", answer.come);
  await settle();
  const second = store.namespace("second");
  const read = new Promise((answered, failed) => second.get("k", { answered, failed }));
  await settle();
  answer.let();
  await meeting;
  expect(await read).toBeUndefined();
});

test("a namespace opened while another one is compared with a restored server is compared too", async () => {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const [mine, theirs] = [new Restarting(shared), new Restarting(shared)];
  const [store, otherStore] = [openSharedStore(mine, clock), openSharedStore(theirs, clock)];
  const cleared = otherStore.namespace("second");
  await theirs.meet("before");
  await use(cleared);
  const snapshot = shared.snapshot();
  await cleared.clear();
  await clock.advance(30_000);
  shared.restart(snapshot);
  await mine.meet("after");
  const answer = moment();
  mine.slow = { prefix: "first", until: answer.come };
  const using = use(store.namespace("first"));
  await settle();
  const second = store.namespace("second");
  const read = new Promise((answered, failed) => second.get("k", { answered, failed }));
  await settle();
  answer.let();
  await using;
  expect(await read).toBeUndefined();
});

test("changes confirmed in the very turn in which a replica without them is met are repeated", async () => {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const backend = new Restarting(shared);
  backend.ageMs = 60_000;
  const mine = openSharedStore(backend, clock).namespace("first");
  const other = openSharedStore(shared.client(), clock).namespace("first");
  await backend.meet("master");
  await other.set("tagged", 1, { ttlMs: 60_000, staleMs: 0, tags: ["t"] });
  await use(other);
  expect((await mine.getMany(["tagged", "k"])).size).toBe(2);
  const replica = shared.snapshot();
  await mine.invalidateTags(["t"]);
  shared.restart(replica);
  await backend.meet("replica");
  expect([...(await mine.getMany(["tagged", "k"])).keys()]).toEqual(["k"]);
});

/** Something happens when the first of several commands of a change has been acknowledged. */
class Interrupted extends Restarting {
  event: (() => Promise<void>) | undefined;

  async #interrupt(): Promise<void> {
    const { event } = this;
    this.event = undefined;
    await event?.();
  }

  override async takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    const taken = await super.takeMany(keys);
    await this.#interrupt();
    return taken;
  }

  override async write(item: KeyedRecord): Promise<void> {
    await super.write(item);
    if (item.record.kind === "stamp") await this.#interrupt();
  }
}

test.each([
  ["delete", (space: Namespace) => space.delete(["k"])],
  ["delete of several keys", (space: Namespace) => space.delete(["k", "other"])],
  ["clear", (space: Namespace) => space.clear()],
  ["invalidateTags", (space: Namespace) => space.invalidateTags(["t"])],
])("%s: repeated if a replica that lacks it takes over before it has ended", async (_, change) => {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const backend = new Interrupted(shared);
  backend.ageMs = 60_000;
  const mine = openSharedStore(backend, clock).namespace("first");
  const other = openSharedStore(shared.client(), clock).namespace("first");
  await backend.meet("master");
  await other.set("k", 1, { ttlMs: 60_000, staleMs: 0, tags: ["t"] });
  expect((await mine.getMany(["k"])).size).toBe(1);
  const replica = shared.snapshot();
  backend.event = () => {
    shared.restart(replica);
    return backend.meet("replica");
  };
  await change(mine);
  expect((await mine.getMany(["k"])).size).toBe(0);
  await settle();
  expect((await other.getMany(["k"])).size).toBe(0);
});

/** Applies changes in the order they are made, and may have no room for stamps. */
class Full extends ReferenceBackend {
  override readonly capabilities: Capabilities = {
    shared: true,
    scan: true,
    ttlResolutionMs: 1,
    ordered: true,
  };
  /** The answer to a stamp without room arrives when this resolves. */
  refusal: Promise<void> | undefined;

  override async write(item: KeyedRecord): Promise<void> {
    if (this.refusal === undefined || item.record.kind !== "stamp") return super.write(item);
    await this.refusal;
    throw new BackendError("STORE_FAILED", "no room");
  }
}

test("tags invalidated by a store without room are not made valid again by a load that names them meanwhile", async () => {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const backend = new Full(shared);
  const mine = cacheWithClock({ backend }, clock);
  const other = cacheWithClock({ backend: shared.client() }, clock);
  await mine.set("else", 1);
  const gate = new Gate<string>();
  const loading = other.getOrSet<string>("k", async (context) => {
    const value = await gate.load(context);
    context.setTags(["t"]);
    return value;
  });
  await settle();
  const refusal = moment();
  backend.refusal = refusal.come;
  const invalidating = mine.invalidateTags("t");
  await settle();
  await gate.finish("old");
  expect(await loading).toBe("old");
  refusal.let();
  await invalidating;
  expect(await other.get("k")).toBeUndefined();
});

/** Answers nothing for a while. */
class Silent extends ReferenceBackend {
  isSilent = false;

  override take(key: string): Promise<StoreRecord | undefined> {
    return this.isSilent ? new Promise(() => {}) : super.take(key);
  }
}

test("disconnect() delivers what is owed although a delivery that began before it fails", async () => {
  const clock = new ManualClock();
  const store = new ReferenceStore(clock);
  const backend = new Silent(store);
  const owing = cacheWithClock({ backend, operationTimeout: 1 }, clock);
  await owing.set("k", "old");
  backend.isSilent = true;
  const deleted = expect(owing.delete("k")).rejects.toMatchObject({ code: "OPERATION_TIMEOUT" });
  await clock.advance(1_000);
  await deleted;
  // By now it has been sent again.
  await clock.advance(1_000);
  backend.isSilent = false;
  const disconnected = owing.disconnect();
  await clock.advance(900);
  await disconnected;
  const other = cacheWithClock({ backend: new ReferenceBackend(store) }, clock);
  expect(await other.get("k")).toBeUndefined();
});

test("a load that takes longer than its entry lives is not doubled, and its result is stored", async () => {
  const clock = new ManualClock();
  const store = new ReferenceStore(clock);
  const open = () => cacheWithClock({ backend: new ReferenceBackend(store) }, clock);
  const [one, other] = [open(), open()];
  const gate = new Gate<string>();
  const options = { ttl: 1, tags: ["t"] };
  const loaded = one.getOrSet("k", gate.load, options);
  await clock.advance(100);
  const waiting = other.getOrSet("k", gate.load, options);
  await clock.advance(5_000);
  expect(gate.calls).toBe(1);
  await gate.finish("value");
  await clock.advance(500);
  expect(await Promise.all([loaded, waiting])).toEqual(["value", "value"]);
  expect(await other.get("k")).toBe("value");
  await one.invalidateTags(["t"]);
  expect(await other.get("k")).toBeUndefined();
});
