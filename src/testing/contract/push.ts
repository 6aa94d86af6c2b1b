// Contract cases: a backend that tells of changes tells of every one, or says that it may have missed some.
import assert from "node:assert/strict";
import type { Backend, PushChannel } from "../../core/backend.ts";
import type { StoreRecord } from "../../core/record.ts";
import { FOR_EVER, keyedEntry, sampleEntry } from "./sample.ts";
import { type ContractCase, type ContractGroup, rule, type Stage } from "./stage.ts";

/** A reader that keeps what it reads by the rules of PushChannel. */
class Keeper {
  readonly #backend: Backend;
  readonly #channel: PushChannel;
  readonly #key: string;
  readonly stop: () => void;
  #spoilt = false;
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

  /** Whether what was read may still be used. */
  get holds(): boolean {
    return this.#kept !== undefined && this.#channel.epoch(this.#key) === this.#kept.epoch;
  }

  get record(): StoreRecord | undefined {
    return this.#kept?.record;
  }

  forget(): void {
    this.#kept = undefined;
    this.#spoilt = true;
  }

  async read(): Promise<void> {
    this.forget();
    this.#spoilt = false;
    const epoch = this.#channel.epoch(this.#key);
    const record = await this.#backend.read(this.#key);
    const trusted = epoch !== 0 && epoch === this.#channel.epoch(this.#key) && !this.#spoilt;
    this.#kept = trusted ? { record, epoch } : undefined;
  }
}

async function trusted(stage: Stage, backend: Backend, key: string): Promise<void> {
  await stage.eventually("the push channel is trusted", () => (backend.push?.epoch(key) ?? 0) !== 0);
}

/** Ways in which another client changes a record that is there. */
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

const told: readonly ContractCase[] = Object.entries(CHANGES).map(([name, change]) =>
  rule(`a value that was read is told of when another client changes it: ${name}`, async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const item = keyedEntry(stage.prefix, "pushed");
    await backend.write(item);
    const keeper = new Keeper(backend, item.key);
    await trusted(stage, backend, item.key);
    // The first write of this client may still be on its way back as a push.
    for (let round = 0; round < 2; round++) {
      await stage.eventually("a value read is kept", async () => {
        if (!keeper.holds) await keeper.read();
        return keeper.holds;
      });
      const present = keeper.record ?? item.record;
      await change(second, item.key, present);
      await stage.eventually(`the push of a ${name}`, () => !keeper.holds);
      await second.write(item);
    }
    keeper.stop();
  }),
);

const rules: readonly ContractCase[] = [
  rule("an absent key that was read is told of when another client writes it", async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const key = stage.key("pushed");
    const keeper = new Keeper(backend, key);
    await trusted(stage, backend, key);
    await keeper.read();
    await second.write(keyedEntry(stage.prefix, "pushed"));
    await stage.eventually("the push of a first write", () => !keeper.holds);
    keeper.stop();
  }),
  rule("readMany is a read: its keys are told of", async (stage) => {
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
  rule("what is kept through changes under way is what stands in the end", async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const key = stage.key("contested");
    const keeper = new Keeper(backend, key);
    await trusted(stage, backend, key);
    for (let round = 0; round < 30; round++) {
      const reading = keeper.read();
      const last = keyedEntry(stage.prefix, "contested");
      await Promise.all([
        second.write(keyedEntry(stage.prefix, "contested")).then(() => second.write(last)),
        reading,
      ]);
      const current = (): boolean => !keeper.holds || keeper.record?.version === last.record.version;
      await stage.eventually(`round ${round}: an overtaken value is let go`, current);
    }
    keeper.stop();
  }),
  rule("a listener that stopped is told nothing more", async (stage) => {
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
  rule("a disconnected channel is not trusted, and a new one is another", async (stage) => {
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
  cases: ({ push, shared }) => (push && shared ? [...told, ...rules] : []),
};
