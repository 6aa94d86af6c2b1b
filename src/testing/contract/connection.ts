// Contract cases: connecting, disconnecting, and what a backend reports about itself.
import assert from "node:assert/strict";
import { assertSameRecord, keyedEntry } from "./sample.ts";
import { type ContractGroup, rule } from "./stage.ts";

const cases = [
  rule("the backend has a name and the capabilities that the subject declares", async (stage) => {
    const backend = stage.bare;
    assert.ok(typeof backend.name === "string" && backend.name.length > 0, "name");
    assert.equal(backend.capabilities.shared, stage.offers.shared, "capabilities.shared");
    assert.equal(backend.capabilities.scan, stage.offers.scan, "capabilities.scan");
    assert.equal(backend.push !== undefined, stage.offers.push, "push");
    assert.ok(backend.capabilities.ttlResolutionMs >= 1, "capabilities.ttlResolutionMs");
  }),
  rule("connecting twice has the effect of connecting once", async (stage) => {
    const backend = await stage.client();
    await backend.connect();
    await Promise.all([backend.connect(), backend.connect()]);
    const item = keyedEntry(stage.prefix, "connected");
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
  }),
  rule("ping resolves while the store responds", async (stage) => {
    const backend = await stage.client();
    assert.equal(await backend.ping(), undefined);
  }),
  rule("disconnecting twice has the effect of disconnecting once", async (stage) => {
    const backend = await stage.client();
    await backend.write(keyedEntry(stage.prefix, "before"));
    await stage.until(backend.disconnect(), "disconnect");
    await stage.until(Promise.all([backend.disconnect(), backend.disconnect()]), "disconnect");
  }),
  rule("a disconnected backend can reconnect", async (stage) => {
    const backend = await stage.client();
    await stage.until(backend.disconnect(), "disconnect");
    await stage.until(backend.connect(), "connect");
    const item = keyedEntry(stage.prefix, "again");
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
    await backend.ping();
  }),
  rule("pool, memoryUsage and describe report valid values", async (stage) => {
    const backend = await stage.client();
    const pool = backend.pool?.();
    if (pool !== undefined) {
      for (const count of Object.values(pool))
        assert.ok(Number.isInteger(count) && count >= 0, JSON.stringify(pool));
      assert.ok(pool.inUse + pool.idle <= pool.size, JSON.stringify(pool));
      assert.ok((pool.full ?? 0) <= pool.size, JSON.stringify(pool));
    }
    const usage = await backend.memoryUsage?.();
    assert.ok(usage === undefined || (usage >= 0 && usage <= 1), `memoryUsage is ${usage}`);
    for (const [name, fact] of Object.entries((await backend.describe?.()) ?? {})) {
      assert.ok(["string", "number", "boolean"].includes(typeof fact), `${name} is a ${typeof fact}`);
    }
  }),
];

export const connection: ContractGroup = { name: "connection", cases: () => cases };
