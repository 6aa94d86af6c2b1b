// Contract cases: every branch of compare-and-swap, alone and under contention.
import assert from "node:assert/strict";
import type { Backend, SwapResult } from "../../core/backend.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { assertSameRecord, FOR_EVER, sampleEntry, sampleLease, sampleStamp } from "./sample.ts";
import { type ContractGroup, rule, type Stage } from "./stage.ts";

const kept = (record: StoreRecord) => ({ record, lifetimeMs: FOR_EVER });

function assertLost(result: SwapResult, current: StoreRecord | undefined): void {
  assert.ok(!result.won, "a swap that should have been refused won");
  if (current === undefined) assert.equal(result.current, undefined);
  else assertSameRecord(result.current, current, "the record that a refused swap reports");
}

const branches = [
  rule("a swap from absent writes if the key is absent", async (stage) => {
    const backend = await stage.client();
    const lease = sampleLease(stage.key("swap"));
    assert.deepEqual(await backend.swap(stage.key("swap"), undefined, kept(lease)), { won: true });
    assertSameRecord(await backend.read(stage.key("swap")), lease);
  }),
  rule("a swap from absent is refused if a record exists, and returns that record", async (stage) => {
    const backend = await stage.client();
    const behind = sampleEntry(stage.key("swap"));
    for (const present of [
      sampleEntry(stage.key("swap")),
      sampleLease(stage.key("swap"), { behind }),
      sampleStamp(),
    ]) {
      await backend.write({ key: stage.key("swap"), ...kept(present) });
      assertLost(
        await backend.swap(stage.key("swap"), undefined, kept(sampleLease(stage.key("swap")))),
        present,
      );
      assertSameRecord(await backend.read(stage.key("swap")), present);
    }
  }),
  rule("a swap from the current version replaces the record", async (stage) => {
    const backend = await stage.client();
    const [lease, entry] = [sampleLease(stage.key("swap")), sampleEntry(stage.key("swap"))];
    await backend.write({ key: stage.key("swap"), ...kept(lease) });
    assert.deepEqual(await backend.swap(stage.key("swap"), lease.version, kept(entry)), { won: true });
    assertSameRecord(await backend.read(stage.key("swap")), entry);
  }),
  rule("a swap may keep the version and change the rest", async (stage) => {
    const backend = await stage.client();
    const lease = sampleLease(stage.key("swap"));
    const renewed = { ...lease, expires: lease.expires + 2_000 };
    await backend.write({ key: stage.key("swap"), ...kept(lease) });
    assert.deepEqual(await backend.swap(stage.key("swap"), lease.version, kept(renewed)), { won: true });
    assertSameRecord(await backend.read(stage.key("swap")), renewed);
  }),
  rule("a swap from another version is refused and returns the current record", async (stage) => {
    const backend = await stage.client();
    const present = sampleEntry(stage.key("swap"), { version: "1234567\0" });
    await backend.write({ key: stage.key("swap"), ...kept(present) });
    for (const expected of ["12345678", "1234567\xff", "\x00234567\0"]) {
      assertLost(
        await backend.swap(stage.key("swap"), expected, kept(sampleEntry(stage.key("swap")))),
        present,
      );
      assertLost(await backend.swap(stage.key("swap"), expected, undefined), present);
    }
    assertSameRecord(await backend.read(stage.key("swap")), present);
  }),
  rule("a swap from a version is refused if the key is absent", async (stage) => {
    const backend = await stage.client();
    assertLost(
      await backend.swap(stage.key("swap"), "12345678", kept(sampleEntry(stage.key("swap")))),
      undefined,
    );
    assertLost(await backend.swap(stage.key("swap"), "12345678", undefined), undefined);
    assert.equal(await backend.read(stage.key("swap")), undefined);
  }),
  rule("a swap to absent removes only the record with that version", async (stage) => {
    const backend = await stage.client();
    const entry = sampleEntry(stage.key("swap"));
    await backend.write({ key: stage.key("swap"), ...kept(entry) });
    assertLost(await backend.swap(stage.key("swap"), undefined, undefined), entry);
    assert.deepEqual(await backend.swap(stage.key("swap"), entry.version, undefined), { won: true });
    assert.equal(await backend.read(stage.key("swap")), undefined);
    assert.deepEqual(await backend.swap(stage.key("swap"), undefined, undefined), { won: true });
  }),
];

const races = [
  rule(
    "of 100 concurrent swaps from absent exactly one wins, and the others see its record",
    async (stage) => {
      const clients = await clientsOf(stage);
      const leases = Array.from({ length: 100 }, () => sampleLease(stage.key("race")));
      const results = await Promise.all(
        leases.map((lease, at) => pick(clients, at).swap(stage.key("race"), undefined, kept(lease))),
      );
      const winners = leases.filter((_, at) => results[at]?.won);
      assert.equal(winners.length, 1);
      const winner = winners[0] as StoreRecord;
      assertSameRecord(await pick(clients, 0).read(stage.key("race")), winner);
      for (const result of results) if (!result.won) assertSameRecord(result.current, winner);
    },
  ),
  rule("of 100 concurrent swaps from one version exactly one wins", async (stage) => {
    const clients = await clientsOf(stage);
    const first = sampleEntry(stage.key("race"));
    await pick(clients, 0).write({ key: stage.key("race"), ...kept(first) });
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        pick(clients, at).swap(
          stage.key("race"),
          first.version,
          at % 3 === 0 ? undefined : kept(sampleEntry(stage.key("race"))),
        ),
      ),
    );
    assert.equal(results.filter(({ won }) => won).length, 1);
  }),
  rule("concurrent swaps from any client lose no update", async (stage) => {
    const clients = await clientsOf(stage);
    const [workers, rounds] = [8, 10];
    const key = stage.key("count");
    await Promise.all(Array.from({ length: workers }, (_, at) => count(pick(clients, at), key, rounds)));
    assert.equal(countIn(await pick(clients, 0).read(key)), workers * rounds);
  }),
];

async function clientsOf(stage: Stage): Promise<readonly Backend[]> {
  const backend = await stage.client();
  return stage.offers.shared ? [backend, await stage.second()] : [backend];
}

function pick(clients: readonly Backend[], at: number): Backend {
  return clients[at % clients.length] as Backend;
}

const countIn = (record: StoreRecord | undefined): number =>
  record?.kind === "entry" ? Buffer.from(record.payload.bytes).readUInt32BE() : 0;

/** Increments the counter `rounds` times, each time by a swap from the version it last saw. */
async function count(backend: Backend, key: string, rounds: number): Promise<void> {
  let seen = await backend.read(key);
  for (let done = 0; done < rounds; ) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(countIn(seen) + 1);
    const next = sampleEntry(key, { payload: { format: 0, bytes } });
    const expected: Token | undefined = seen?.version;
    const result = await backend.swap(key, expected, kept(next));
    if (result.won) done++;
    seen = result.won ? next : result.current;
  }
}

export const swapping: ContractGroup = { name: "swap", cases: () => [...branches, ...races] };
