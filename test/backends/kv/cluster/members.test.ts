// How long a client of a cluster stays connected to servers that hold no slots.
import { expect, test } from "vitest";
import { Members } from "../../../../src/backends/kv/cluster/members.ts";
import { ManualClock } from "../../../../src/testing/index.ts";
import { FakeServer } from "../../../support/kv/fake-server.ts";
import { nodeHost } from "../../../support/kv/node-host.ts";
import { until } from "../../../support/until.ts";

const membersOn = (clock: ManualClock): Members =>
  new Members(nodeHost({ clock, operationTimeoutMs: 1_000, connectTimeoutMs: 1_000 }));

test("a server that was asked for a key before it had a slot is released five seconds after the last such key", async () => {
  await using server = await FakeServer.start();
  const clock = new ManualClock();
  const members = membersOn(clock);
  const ping = () => members.guest(server.endpoint).link(0).command("PING");
  await ping();
  await clock.advance(4_000);
  await ping();
  await clock.advance(4_000);
  expect(server.present).toHaveLength(1);
  await clock.advance(1_200);
  await until(() => server.present.length === 0, { what: "the server is left" });
  expect(clock.pending).toBe(0);
});

test("a master without slots is released immediately, and one that owes an answer after operation_timeout at the latest", async () => {
  await using idle = await FakeServer.start();
  await using busy = await FakeServer.start();
  const clock = new ManualClock();
  const members = membersOn(clock);
  const [first, second] = [members.add(idle.endpoint), members.add(busy.endpoint)];
  await Promise.all([first.node.connect(), second.node.connect()]);
  const owed = second.node.links[0]!.command("GET", "k").catch((error: unknown) => error);
  await busy.received("GET");
  expect(members.keep(new Set())).toBe(true);
  await until(() => idle.present.length === 0, { what: "the idle one is left" });
  await clock.advance(500);
  expect(busy.present).toHaveLength(1);
  await clock.advance(700);
  await until(() => busy.present.length === 0, { what: "the other is left too" });
  expect(await owed).toBeInstanceOf(Error);
  expect(members.all()).toEqual([]);
});

test("a server that comes back is treated as a new one", async () => {
  await using server = await FakeServer.start();
  const members = membersOn(new ManualClock());
  const first = members.add(server.endpoint);
  members.keep(new Set());
  expect(members.find(server.endpoint)).toBeUndefined();
  expect(members.add(server.endpoint)).not.toBe(first);
  members.close();
});
