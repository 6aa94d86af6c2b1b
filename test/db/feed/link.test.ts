// The connections of a feed, over a client that a test speaks for.
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { FeedClient } from "../../../src/db/feed/library.ts";
import { ReplicationLink } from "../../../src/db/feed/link.ts";

class FakeClient extends EventEmitter implements FeedClient {
  readonly connection = Object.assign(new EventEmitter(), {
    sendCopyFromChunk() {},
    stream: { destroy() {} },
  });
  async connect(): Promise<void> {}
  query(text: string): Promise<never> {
    if (text.startsWith("START_REPLICATION")) setImmediate(() => this.connection.emit("replicationStart"));
    return new Promise(() => {});
  }
  async end(): Promise<void> {}
}

test("a message that cannot be decoded ends the stream, not the process", async () => {
  const client = new FakeClient();
  const link = await ReplicationLink.open({
    open: async () => client,
    clock: systemClock,
    timeoutMs: 10_000,
  });
  await link.start("slot", "publication", true, () => {});
  expect(() => client.connection.emit("copyData", { chunk: Buffer.from("kshort") })).not.toThrow();
  expect(link.failure).toBeInstanceOf(RangeError);
});

test("so does a listener that fails", async () => {
  const client = new FakeClient();
  const link = await ReplicationLink.open({
    open: async () => client,
    clock: systemClock,
    timeoutMs: 10_000,
  });
  await link.start("slot", "publication", true, () => {
    throw new Error("unforeseen");
  });
  expect(() => client.connection.emit("copyData", { chunk: Buffer.from("x") })).not.toThrow();
  expect(link.failure?.message).toBe("unforeseen");
});
