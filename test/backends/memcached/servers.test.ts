// Servers apart from the calls: what connections leave behind, which servers count as available, and whose time counts.
import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { CasMemory } from "../../../src/backends/memcached/cas-memory.ts";
import { Connection } from "../../../src/backends/memcached/connection.ts";
import { ItemKeys } from "../../../src/backends/memcached/item-key.ts";
import { MemcachedNode } from "../../../src/backends/memcached/node.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { FakeServer, greet, type Script } from "../../support/memcached/fake-server.ts";
import { opened } from "../../support/memcached/opened.ts";
import { failure } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

const servers: FakeServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function fake(script: Script = greet): Promise<FakeServer> {
  const server = await FakeServer.start(script);
  servers.push(server);
  return server;
}

const settings = {
  clock: systemClock,
  operationTimeoutMs: 1_000,
  connectTimeoutMs: 1_000,
  keys: new ItemKeys(Buffer.alloc(6)),
};

/** Ends when the test decides. */
class Meeting {
  end: () => void = () => {};
  readonly over = new Promise<void>((resolve) => {
    this.end = resolve;
  });
}

/** Reports a time that is ahead by `aheadMs`, which can grow. */
function leapingClock() {
  let aheadMs = 0;
  const now = (): number => systemClock.now() + aheadMs;
  return {
    ...settings,
    clock: { ...systemClock, now, coarse: now },
    leap: (ms: number): void => {
      aheadMs += ms;
    },
  };
}

const urlOf = (...some: readonly FakeServer[]): string =>
  `memcached://${some.map(({ url }) => url.replace("memcached://", "")).join(",")}`;

/** In the store's order. */
async function pair(script: Script): Promise<[FakeServer, FakeServer]> {
  const both = [await fake(script), await fake(script)];
  return both.sort((a, b) => (a.url < b.url ? -1 : 1)) as [FakeServer, FakeServer];
}

describe("a connection", () => {
  it("that was lost is not retained by the signal that could have aborted it", async () => {
    const server = await fake();
    const { signal } = new AbortController();
    for (let round = 0; round < 3; round++) {
      const owner = { signal, closed: () => {} };
      const connection = await Connection.open({ ...settings, endpoint: server.endpoint }, owner);
      expect(getEventListeners(signal, "abort").length).toBe(1);
      connection.destroy(new ConnectionError("lost"));
      expect(getEventListeners(signal, "abort")).toEqual([]);
    }
  });
});

describe("the CAS of a record", () => {
  it("is not remembered for keys so long that ten thousand would fill the memory", () => {
    const memory = new CasMemory();
    const version = systemClock.token();
    for (const [key, cas] of [
      ["k".repeat(1_000), "7"],
      ["k".repeat(2_000), undefined],
    ] as const) {
      memory.keep(key, version, "7");
      expect(memory.take(key, version)).toBe(cas);
    }
  });
});

describe("a server that is being met over two connections", () => {
  it("is available to a caller who needs it for another one, even if the second was met before the first", async () => {
    const server = await fake();
    const meetings: Meeting[] = [];
    const node = new MemcachedNode(server.endpoint, {
      clock: systemClock,
      poolSize: 2,
      settings,
      onServer: () => {
        const meeting = new Meeting();
        meetings.push(meeting);
        return meeting.over;
      },
    });
    const [first, second] = node.links;
    const firstUp = first?.connect();
    await until(() => meetings.length === 1, { what: "the first is met" });
    const secondUp = second?.connect();
    await until(() => meetings.length === 2, { what: "the second is met" });
    meetings[1]?.end();
    await secondUp;
    const reached = new Promise<Connection>((resolve, reject) => node.ahead.whenUp(resolve, reject));
    meetings[0]?.end();
    await firstUp;
    expect(await reached).toBe(first?.connection);
    node.close();
  });
});

describe("a partially reachable store", () => {
  it("answers as long as one server has answered all requests, however long ago", async () => {
    const [one, other] = await pair(greet);
    const { leap, ...host } = leapingClock();
    await using backend = opened(urlOf(one, other), host);
    await backend.connect();
    await one.stop();
    await until(() => failure(backend.ping()).then((error) => error instanceof ConnectionError), {
      what: "it is noticed",
    });
    await until(() => backend.pool().inUse === 0, { what: "the other one has answered" });
    leap(60_000);
    expect(backend.answersInPart()).toBe(true);
    // A request that was just sent proves nothing yet.
    const reading = backend.ping().catch(() => {});
    expect(backend.answersInPart()).toBe(true);
    await reading;
  });

  it("does not answer when requests are overdue on every server", async () => {
    const [one, other] = await pair(greet);
    await using backend = opened(urlOf(one, other), { operationTimeoutMs: 100 });
    await backend.connect();
    for (const server of [one, other]) server.script = () => undefined;
    await failure(backend.ping());
    await until(() => !backend.answersInPart(), { what: "both are known to be silent" });
  });
});

describe("the store's time", () => {
  it("is that of the next server once the first has been away too long for its time to be known", async () => {
    const { leap, ...host } = leapingClock();
    const [first, second] = await pair((line, client) =>
      line === "stats"
        ? `STAT version 1.6.18\r\nSTAT time ${Math.floor(host.clock.now() / 1_000)}\r\nEND\r\n`
        : greet(line, client),
    );
    await using backend = opened(urlOf(first, second), host);
    await backend.connect();
    for (const { socket } of first.clients) socket.destroy();
    await first.stop();
    leap(24 * 3_600_000);
    // The amount by which two clocks may have drifted apart in a day.
    expect(backend.clockErrorMs()).toBeGreaterThan(20_000);
    await until(() => backend.clockErrorMs() < 2_000, { what: "the other one is asked" });
    expect(Math.abs(backend.now() - host.clock.now())).toBeLessThan(2_000);
  });
});
