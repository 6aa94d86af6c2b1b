// Contract cases: a backend's life, and what it says about itself.
import assert from "node:assert/strict";
import { assertSameRecord, keyedEntry } from "./sample.ts";
import { type ContractGroup, rule } from "./stage.ts";

const cases = [
  rule("the backend has a name and is what the subject says", async (stage) => {
    const backend = stage.bare;
    assert.ok(typeof backend.name === "string" && backend.name.length > 0, "name");
    assert.equal(backend.capabilities.shared, stage.offers.shared, "capabilities.shared");
    assert.equal(backend.capabilities.scan, stage.offers.scan, "capabilities.scan");
    assert.equal(backend.push !== undefined, stage.offers.push, "push");
    assert.ok(backend.capabilities.ttlResolutionMs >= 1, "capabilities.ttlResolutionMs");
  }),
  rule("connecting twice is connecting once", async (stage) => {
    const backend = await stage.client();
    await backend.connect();
    await Promise.all([backend.connect(), backend.connect()]);
    const item = keyedEntry(stage.prefix, "connected");
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
  }),
  rule("ping resolves while the store answers", async (stage) => {
    const backend = await stage.client();
    assert.equal(await backend.ping(), undefined);
  }),
  rule("disconnecting twice is disconnecting once", async (stage) => {
    const backend = await stage.client();
    await backend.write(keyedEntry(stage.prefix, "before"));
    await stage.until(backend.disconnect(), "disconnect");
    await stage.until(Promise.all([backend.disconnect(), backend.disconnect()]), "disconnect");
  }),
  rule("a disconnected backend can be connected again", async (stage) => {
    const backend = await stage.client();
    await stage.until(backend.disconnect(), "disconnect");
    await stage.until(backend.connect(), "connect");
    const item = keyedEntry(stage.prefix, "again");
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
    await backend.ping();
  }),
  rule("what it tells about its pool and itself is in order", async (stage) => {
    const backend = await stage.client();
    const pool = backend.pool?.();
    if (pool !== undefined) {
      for (const count of Object.values(pool))
        assert.ok(Number.isInteger(count) && count >= 0, JSON.stringify(pool));
      assert.ok(pool.inUse + pool.idle <= pool.size, JSON.stringify(pool));
      assert.ok((pool.full ?? 0) <= pool.size, JSON.stringify(pool));
    }
    const fill = await backend.fill?.();
    assert.ok(fill === undefined || (fill >= 0 && fill <= 1), `fill is ${fill}`);
    for (const [name, fact] of Object.entries((await backend.describe?.()) ?? {})) {
      assert.ok(["string", "number", "boolean"].includes(typeof fact), `${name} is a ${typeof fact}`);
    }
  }),
];

export const connection: ContractGroup = { name: "connection", cases: () => cases };
