// Contract cases: a backend with push reports every change, or that it may have missed some.
import assert from "node:assert/strict";
import type { Backend, PushChannel } from "../../core/backend.ts";
import type { StoreRecord } from "../../core/record.ts";
import { FOR_EVER, keyedEntry, sampleEntry } from "./sample.ts";
import { type ContractCase, type ContractGroup, rule, type Stage } from "./stage.ts";

/** A reader that caches one key by the rules of PushChannel. */
class CachedRead {
  readonly #backend: Backend;
  readonly #channel: PushChannel;
  readonly #key: string;
  readonly stop: () => void;
  #isInvalidated = false;
  #kept: { readonly record: StoreRecord | undefined; readonly epoch: number } | undefined;

  constructor(backend: Backend, key: string) {
    assert.ok(backend.push, "a subject that offers `push` must have a push channel");
    this.#backend = backend;
    this.#channel = backend.push;
    this.#key = key;
    this.stop = this.#channel.onChange((changed) => {
      if (changed === undefined || changed === key) this.forget();
    });
  }

  /** Whether the cached record may still be used. */
  get holds(): boolean {
    return this.#kept !== undefined && this.#channel.epoch(this.#key) === this.#kept.epoch;
  }

  get record(): StoreRecord | undefined {
    return this.#kept?.record;
  }

  forget(): void {
    this.#kept = undefined;
    this.#isInvalidated = true;
  }

  async read(): Promise<void> {
    this.forget();
    this.#isInvalidated = false;
    const epoch = this.#channel.epoch(this.#key);
    const record = await this.#backend.read(this.#key);
    const trusted = epoch !== 0 && epoch === this.#channel.epoch(this.#key) && !this.#isInvalidated;
    this.#kept = trusted ? { record, epoch } : undefined;
  }
}

async function trusted(stage: Stage, backend: Backend, key: string): Promise<void> {
  await stage.eventually("the push channel is trusted", () => (backend.push?.epoch(key) ?? 0) !== 0);
}

/** The ways another client can change an existing record. */
const CHANGES: Readonly<
  Record<string, (second: Backend, key: string, present: StoreRecord) => Promise<unknown>>
> = {
  write: (second, key) => second.write({ key, record: sampleEntry(key), lifetimeMs: FOR_EVER }),
  writeMany: (second, key) => second.writeMany([{ key, record: sampleEntry(key), lifetimeMs: FOR_EVER }]),
  swap: (second, key, { version }) =>
    second.swap(key, version, { record: sampleEntry(key), lifetimeMs: FOR_EVER }),
  "swap to nothing": (second, key, { version }) => second.swap(key, version, undefined),
  take: (second, key) => second.take(key),
  takeMany: (second, key) => second.takeMany([key]),
  removeMany: (second, key) => second.removeMany?.([key]) ?? second.takeMany([key]),
};

const pushedChanges: readonly ContractCase[] = Object.entries(CHANGES).map(([name, change]) =>
  rule(`a change by another client to a value that was read is pushed: ${name}`, async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const item = keyedEntry(stage.prefix, "pushed");
    await backend.write(item);
    const cachedRead = new CachedRead(backend, item.key);
    await trusted(stage, backend, item.key);
    // The push for this client's own first write may still arrive.
    for (let round = 0; round < 2; round++) {
      await stage.eventually("a value read is kept", async () => {
        if (!cachedRead.holds) await cachedRead.read();
        return cachedRead.holds;
      });
      const present = cachedRead.record ?? item.record;
      await change(second, item.key, present);
      await stage.eventually(`the push of a ${name}`, () => !cachedRead.holds);
      await second.write(item);
    }
    cachedRead.stop();
  }),
);

const rules: readonly ContractCase[] = [
  rule("a write by another client to an absent key that was read is pushed", async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const key = stage.key("pushed");
    const cachedRead = new CachedRead(backend, key);
    await trusted(stage, backend, key);
    await cachedRead.read();
    await second.write(keyedEntry(stage.prefix, "pushed"));
    await stage.eventually("the push of a first write", () => !cachedRead.holds);
    cachedRead.stop();
  }),
  rule("changes to keys that readMany read are pushed", async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const items = ["a", "b", "c"].map((name) => keyedEntry(stage.prefix, name));
    await second.writeMany(items);
    await trusted(stage, backend, stage.key("a"));
    const changed = new Set<string | undefined>();
    const epochs = items.map(({ key }) => backend.push?.epoch(key));
    const stop = backend.push?.onChange((key) => changed.add(key));
    await backend.readMany(items.map(({ key }) => key));
    await second.takeMany(items.map(({ key }) => key));
    for (const [at, { key }] of items.entries()) {
      await stage.eventually(
        `the push for ${key}`,
        () => changed.has(key) || changed.has(undefined) || backend.push?.epoch(key) !== epochs[at],
      );
    }
    stop?.();
  }),
  rule("a value cached during concurrent changes is the latest one", async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const key = stage.key("contested");
    const cachedRead = new CachedRead(backend, key);
    await trusted(stage, backend, key);
    for (let round = 0; round < 30; round++) {
      const reading = cachedRead.read();
      const last = keyedEntry(stage.prefix, "contested");
      await Promise.all([
        second.write(keyedEntry(stage.prefix, "contested")).then(() => second.write(last)),
        reading,
      ]);
      const current = (): boolean => !cachedRead.holds || cachedRead.record?.version === last.record.version;
      await stage.eventually(`round ${round}: an overtaken value is let go`, current);
    }
    cachedRead.stop();
  }),
  rule("a listener that unsubscribed is not called again", async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const item = keyedEntry(stage.prefix, "stopped");
    await second.write(item);
    await trusted(stage, backend, item.key);
    const heard = { stopped: 0, listening: 0 };
    const stop = backend.push?.onChange(() => heard.stopped++);
    const stopLater = backend.push?.onChange(() => heard.listening++);
    stop?.();
    await backend.read(item.key);
    await second.take(item.key);
    await stage.eventually("the push to the other listener", () => heard.listening > 0);
    assert.equal(heard.stopped, 0);
    stopLater?.();
  }),
  rule("a disconnected channel is not trusted, and a reconnected one has a new epoch", async (stage) => {
    const backend = await stage.client();
    const key = stage.key("epoch");
    await trusted(stage, backend, key);
    const first = backend.push?.epoch(key);
    await stage.until(backend.disconnect(), "disconnect");
    assert.equal(backend.push?.epoch(key), 0);
    await stage.until(backend.connect(), "connect");
    await trusted(stage, backend, key);
    assert.notEqual(backend.push?.epoch(key), first);
  }),
];

export const pushing: ContractGroup = {
  name: "push",
  cases: ({ push, shared }) => (push && shared ? [...pushedChanges, ...rules] : []),
};
