// Compare-and-swap on memcached's CAS values: never won by mistake, and with as few round trips as possible.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ItemKeys } from "../../../src/backends/memcached/item-key.ts";
import { Ring } from "../../../src/backends/memcached/ring.ts";
import { encodeRecord } from "../../../src/core/frame/frame.ts";
import { exchange } from "../../support/exchange.ts";
import { opened } from "../../support/memcached/opened.ts";
import { freezeMemcached, type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { failure, item, stampFor } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

let server: MemcachedServer;
beforeAll(async () => {
  server = await startMemcached();
});
afterAll(() => server.stop());

/** How many reads and stores the server received. */
async function commandsOf({
  port,
}: MemcachedServer): Promise<{ readonly reads: number; readonly stores: number }> {
  const reply = await exchange({ port }, "stats\r\n", (text) => text.endsWith("END\r\n"));
  const count = (name: string): number => Number(new RegExp(`STAT ${name} (\\d+)`).exec(reply)?.[1]);
  return { reads: count("cmd_get"), stores: count("cmd_set") };
}

describe("a swap", () => {
  it("after a restart does not win with a CAS that the new server gave to another record", async () => {
    await using fresh = await startMemcached();
    await using backend = opened(fresh.url);
    await using other = opened(fresh.url);
    const [lease, foreign, next] = [stampFor("k"), stampFor("k"), stampFor("k")];
    expect(await backend.swap("k", undefined, lease)).toEqual({ won: true });
    await fresh.restart("SIGKILL");
    // The first record of a server has CAS 1, before and after.
    await until(() => other.write(foreign).then(() => true), { what: "it is written" });
    await until(() => backend.ping().then(() => true), { what: "the first one is back" });
    expect(await backend.swap("k", lease.record.version, next)).toEqual({
      won: false,
      current: foreign.record,
    });
    expect(await backend.read("k")).toEqual(foreign.record);
  });

  it("of a record that was swapped in by this process needs no read", async () => {
    await using backend = opened(server.url);
    const records = Array.from({ length: 6 }, () => stampFor("chain"));
    const before = await commandsOf(server);
    let expected: string | undefined;
    for (const next of records) {
      expect(await backend.swap("chain", expected, next)).toEqual({ won: true });
      expected = next.record.version;
    }
    expect(await backend.swap("chain", expected, undefined)).toEqual({ won: true });
    const after = await commandsOf(server);
    expect(after).toEqual({ reads: before.reads, stores: before.stores + records.length });
  });

  it("of a record that another process has replaced loses, and returns the current record", async () => {
    await using backend = opened(server.url);
    await using other = opened(server.url);
    for (const replace of ["write", "swap"] as const) {
      const [mine, theirs] = [stampFor(replace), stampFor(replace)];
      expect(await backend.swap(replace, undefined, mine)).toEqual({ won: true });
      if (replace === "write") await other.write(theirs);
      else expect(await other.swap(replace, mine.record.version, theirs)).toEqual({ won: true });
      expect(await backend.swap(replace, mine.record.version, stampFor(replace))).toEqual({
        won: false,
        current: theirs.record,
      });
    }
  });

  it("of a record that was rewritten with the same version wins, whatever its CAS is by now", async () => {
    await using backend = opened(server.url);
    await using other = opened(server.url);
    const mine = stampFor("same version");
    expect(await backend.swap(mine.key, undefined, mine)).toEqual({ won: true });
    await other.write(mine);
    expect(await backend.swap(mine.key, mine.record.version, undefined)).toEqual({ won: true });
  });

  it("fails when its connection breaks, and does not continue over another one", async () => {
    await using fresh = await startMemcached();
    await using backend = opened(fresh.url, { operationTimeoutMs: 300 });
    const lease = stampFor("k");
    await backend.swap("k", undefined, lease);
    await freezeMemcached(fresh);
    const swapped = failure(backend.swap("k", lease.record.version, stampFor("k")));
    expect((await swapped).code).toBe("OPERATION_TIMEOUT");
    await fresh.kill();
  });
});

describe("a long key", () => {
  const long = "k".repeat(500);

  /** Stores a record where another key is looked up, as if their hashes collided. */
  async function collide(key: string, record: ReturnType<typeof item>["record"]): Promise<void> {
    const ring = new Ring([{ host: "127.0.0.1", port: server.port }]);
    const out = Buffer.alloc(300);
    const text = out.toString("latin1", 0, new ItemKeys(ring.fingerprint).write(out, 0, key));
    const data = encodeRecord(record, { withKey: true }).toString("latin1");
    const request = Buffer.from(`ms ${text} ${data.length} b\r\n${data}\r\n`, "latin1");
    // The request is bytes: a text would be sent as UTF-8.
    await exchange({ port: server.port }, request as unknown as string, (reply) => reply === "HD\r\n");
  }

  it("does not get the record of another key with the same hash, and replaces it", async () => {
    await using backend = opened(server.url);
    const [mine, foreign] = [item(long), item("f".repeat(500))];
    await collide(long, foreign.record);
    expect(await backend.read(long)).toBeUndefined();
    expect(await backend.readMany([long])).toEqual([undefined]);
    expect(await backend.swap(long, foreign.record.version, undefined)).toEqual({
      won: false,
      current: undefined,
    });
    expect(await backend.swap(long, undefined, mine)).toEqual({ won: true });
    expect((await backend.read(long))?.version).toBe(mine.record.version);
  });

  it("is not confused with a short one spelled like its hash", async () => {
    await using backend = opened(server.url);
    const hash = createHash("sha256").update(long).digest().toString("latin1");
    await backend.write(stampFor(hash));
    await backend.take(long);
    expect(await backend.read(long)).toBeUndefined();
    expect(await backend.read(hash)).toBeDefined();
  });
});
