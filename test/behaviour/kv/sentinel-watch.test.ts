// Finding and following the master, with scripted sentinels.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SentinelWatch } from "../../../src/backends/kv/sentinel/sentinel.ts";
import type { Endpoint } from "../../../src/backends/kv/server/connection.ts";
import type { HostPort, SentinelAddress, SentinelOptions } from "../../../src/core/address/address.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { ManualClock, settle } from "../../../src/testing/index.ts";
import { bulk, FakeServer, greet, type Script } from "../../support/kv/fake-server.ts";
import { failure } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

const CONNECT_TIMEOUT_MS = 5_000;
/** No server listens there: the watch only passes addresses on. */
const OLD: HostPort = { host: "10.0.0.1", port: 6379 };
const NEW: HostPort = { host: "10.0.0.2", port: 6379 };

/** What a sentinel believes. */
interface Mind {
  master: HostPort | undefined;
  others: readonly HostPort[];
  isSilent: boolean;
  mayListen: boolean;
}

interface Sentinel {
  readonly server: FakeServer;
  readonly mind: Mind;
  /** What it publishes to subscribers. */
  announce(name: string, master: HostPort): void;
}

let sentinels: Sentinel[];
let watches: SentinelWatch[];
let clock: ManualClock;
let switches: Endpoint[];
let reports: string[];

beforeEach(() => {
  sentinels = [];
  watches = [];
  clock = new ManualClock();
  switches = [];
  reports = [];
});

afterEach(async () => {
  for (const watch of watches) watch.close();
  await Promise.all(sentinels.map(({ server }) => server.stop()));
});

const address = ({ host, port }: HostPort): string => `${bulk(host)}${bulk(String(port))}`;

function scriptOf(mind: Mind): Script {
  return (command, client) => {
    const [name, question, master] = command;
    if (mind.isSilent) return undefined;
    if (name === "SUBSCRIBE")
      return mind.mayListen
        ? `>3\r\n+subscribe\r\n+${question}\r\n:1\r\n`
        : "-NOPERM this user has no permissions to access one of the channels\r\n";
    if (name !== "SENTINEL") return greet(command, client);
    const isKnown = mind.master !== undefined && master === "main";
    if (question === "SENTINELS")
      return isKnown
        ? `*${mind.others.length}\r\n${mind.others
            .map(
              (other) =>
                `%3\r\n+name\r\n+x\r\n+ip\r\n${bulk(other.host)}+port\r\n${bulk(String(other.port))}`,
            )
            .join("")}`
        : "-ERR No such master with that name\r\n";
    return isKnown ? `*2\r\n${address(mind.master!)}` : "*-1\r\n";
  };
}

async function newSentinel(mind: Partial<Mind> = {}): Promise<Sentinel> {
  const whole: Mind = { master: OLD, others: [], isSilent: false, mayListen: true, ...mind };
  const server = await FakeServer.start(scriptOf(whole));
  const sentinel: Sentinel = {
    server,
    mind: whole,
    announce: (name, { host, port }) => {
      const news = bulk(`${name} ${OLD.host} ${OLD.port} ${host} ${port}`);
      for (const client of server.present.filter(isListening))
        client.say(`>3\r\n+message\r\n+switch-master\r\n${news}`.replace("\n+switch", "\n++switch"));
    },
  };
  sentinels.push(sentinel);
  return sentinel;
}

const isListening = ({ commands }: { readonly commands: readonly string[][] }): boolean =>
  commands.some(([name]) => name === "SUBSCRIBE");

const listeners = ({ server }: Sentinel): number => server.present.filter(isListening).length;

const endpointOf = ({ server }: Sentinel): HostPort => server.endpoint;

/** How often a sentinel was asked, not counting subscriptions. */
const questions = ({ server }: Sentinel): number =>
  server.clients.filter(({ commands }) => commands.some(([, what]) => what === "SENTINELS")).length;

function watchOf(known: readonly Sentinel[], options: SentinelOptions = {}, name = "main"): SentinelWatch {
  const hosts = known.map(endpointOf) as [HostPort, ...HostPort[]];
  const login = { username: "data-user", password: "data-secret" };
  const store: SentinelAddress = {
    kind: "sentinel",
    hosts,
    name,
    tls: false,
    database: 5,
    ...login,
    options,
  };
  const settings = {
    login,
    tls: undefined,
    database: 5,
    clock,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    operationTimeoutMs: 10_000,
    readsTogether: true,
  };
  const watch = new SentinelWatch(store, settings, {
    switched: (master) => switches.push(master),
    report: (error) => reports.push(error.message),
  });
  watches.push(watch);
  return watch;
}

/** A watch that has found the master, had it confirmed, and is subscribed. */
async function following(known: readonly Sentinel[], by = known[0]!): Promise<SentinelWatch> {
  const watch = watchOf(known);
  watch.confirmed(await watch.findMaster());
  await until(() => listeners(by) === 1, { what: "it listens" });
  // The reply to the subscription has been processed: the heartbeat and the check for unanswered commands remain.
  await until(() => clock.pending === 2, { what: "the heartbeat has begun" });
  return watch;
}

/** Advances the clock in small steps until the condition holds. */
const passUntil = (what: string, isSo: () => boolean): Promise<unknown> =>
  until(() => clock.advance(20).then(isSo), { what });

describe("the master", () => {
  test("is looked up with the sentinels' login, never with the store's", async () => {
    const sentinel = await newSentinel();
    const watch = watchOf([sentinel], { sentinelUsername: "watcher", sentinelPassword: "sentinel-secret" });
    expect(await watch.findMaster()).toEqual(OLD);
    await until(() => listeners(sentinel) === 1, { what: "it listens" });
    for (const { commands } of sentinel.server.clients)
      expect(commands[0]).toEqual(["HELLO", "3", "AUTH", "watcher", "sentinel-secret", "SETNAME", "xcache"]);
    expect(JSON.stringify(sentinel.server.commands)).not.toMatch(/data-|SELECT/);
  });

  test("is looked up without a login if the sentinels have none", async () => {
    const sentinel = await newSentinel();
    expect(await watchOf([sentinel]).findMaster()).toEqual(OLD);
    expect(sentinel.server.commands[0]).toEqual(["HELLO", "3", "SETNAME", "xcache"]);
  });

  test("is looked up once for all concurrent callers, and again for later ones", async () => {
    const sentinel = await newSentinel();
    const watch = watchOf([sentinel]);
    expect(await Promise.all([watch.findMaster(), watch.findMaster(), watch.findMaster()])).toEqual([
      OLD,
      OLD,
      OLD,
    ]);
    expect(questions(sentinel)).toBe(1);
    sentinel.mind.master = NEW;
    expect(await watch.findMaster()).toEqual(NEW);
    expect(questions(sentinel)).toBe(2);
  });

  test("is named by the next sentinel when one is down, does not know the name or answers nonsense", async () => {
    const down = await newSentinel();
    const unknowing = await newSentinel({ master: undefined });
    const senseless = await newSentinel({ master: { host: "10.0.0.9", port: 70_000 } });
    const other = await newSentinel();
    other.server.script = (command, client) =>
      command[0] === "SENTINEL" ? "-ERR unknown command 'SENTINEL'\r\n" : greet(command, client);
    const good = await newSentinel();
    const watch = watchOf([down, unknowing, senseless, other, good]);
    await down.server.stop().then(() => Object.defineProperty(down.server, "endpoint", { value: OLD }));
    expect(await watch.findMaster()).toEqual(OLD);
    expect([unknowing, senseless, other, good].map(questions)).toEqual([1, 1, 1, 1]);
    // The sentinel that answered is asked first from then on.
    expect(await watch.findMaster()).toEqual(OLD);
    expect([unknowing, senseless, other, good].map(questions)).toEqual([1, 1, 1, 2]);
  });

  test("is looked up at the next sentinel too when one is slow", async () => {
    const silent = await newSentinel({ isSilent: true });
    const good = await newSentinel({ master: NEW });
    const found = watchOf([silent, good]).findMaster();
    await silent.server.received("HELLO");
    await clock.advance(199);
    expect(good.server.clients).toHaveLength(0);
    await clock.advance(1);
    expect(await found).toEqual(NEW);
    await until(() => silent.server.present.length === 0, { what: "the slow one is given up" });
  });

  test("may still be named by the slow one", async () => {
    const slow = await newSentinel({ isSilent: true });
    const silent = await newSentinel({ isSilent: true });
    const found = watchOf([slow, silent]).findMaster();
    const client = await slow.server.received("HELLO");
    await clock.advance(300);
    await silent.server.received("HELLO");
    slow.mind.isSilent = false;
    client.say("%1\r\n+server\r\n+redis\r\n");
    expect(await found).toEqual(OLD);
  });

  test("is searched for at most connect_timeout", async () => {
    const silent = await Promise.all([1, 2, 3].map(() => newSentinel()));
    // They answer the greeting and nothing more, every time.
    for (const { server } of silent)
      server.script = (command, client) => (command[0] === "HELLO" ? greet(command, client) : undefined);
    const began = clock.now();
    const error = failure(watchOf(silent).findMaster()).then((thrown) => ({
      thrown,
      took: clock.now() - began,
    }));
    for (const { server } of silent) {
      await server.received("SENTINEL");
      // By then the next one is asked too.
      await clock.advance(200);
    }
    await clock.advance(began + CONNECT_TIMEOUT_MS - clock.now());
    const { thrown, took } = await error;
    expect(thrown).toBeInstanceOf(ConnectionError);
    expect(took).toBeLessThanOrEqual(CONNECT_TIMEOUT_MS);
    expect(clock.pending).toBe(0);
  });

  test("that no sentinel knows gives a clear error at once", async () => {
    const known = [await newSentinel(), await newSentinel()];
    const error = await failure(watchOf(known, {}, "mian").findMaster());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain('no sentinel names the master "mian"');
    for (const { server } of known)
      expect(error.message).toContain(`127.0.0.1:${server.port} knows no master`);
    expect(error.hint).toContain("SENTINEL MASTERS");
  });

  test("is not revealed to a wrong login; the error says whose login it is and contains no password", async () => {
    const sentinel = await newSentinel();
    sentinel.server.script = () => "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    const error = await failure(watchOf([sentinel], { sentinelPassword: "sentinel-secret" }).findMaster());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("WRONGPASS");
    expect(error.hint).toContain("sentinel_password");
    expect(JSON.stringify([error, error.message, error.stack, error.cause])).not.toContain("secret");
  });
});

describe("a sentinel", () => {
  test("learnt of from another is asked when the configured ones are gone", async () => {
    const heardOf = await newSentinel({ master: NEW });
    const known = await newSentinel({ others: [heardOf.server.endpoint] });
    const watch = watchOf([known]);
    expect(await watch.findMaster()).toEqual(OLD);
    expect(questions(heardOf)).toBe(0);
    await known.server.stop();
    expect(await watch.findMaster()).toEqual(NEW);
    expect(questions(heardOf)).toBe(1);
  });

  test("whose master turns out not to be one is asked last", async () => {
    const stale = await newSentinel({ master: OLD });
    const good = await newSentinel({ master: NEW });
    const watch = watchOf([stale, good]);
    expect(await watch.findMaster()).toEqual(OLD);
    watch.connectionLost();
    expect(await watch.findMaster()).toEqual(NEW);
    watch.confirmed(NEW);
    // Losing a good connection later does not count against the sentinel that named it.
    watch.connectionLost();
    expect(await watch.findMaster()).toEqual(NEW);
    expect(questions(stale)).toBe(1);
    // Nor is there a subscription to a stale one.
    await until(() => listeners(good) === 1 && listeners(stale) === 0, {
      what: "the good one is listened to",
    });
  });
});

describe("news of another master", () => {
  test("are passed on at once and trusted without asking", async () => {
    const [sentinel, other] = [await newSentinel(), await newSentinel()];
    const watch = await following([sentinel, other]);
    const before = questions(sentinel);
    sentinel.announce("other", NEW);
    sentinel.announce("main", NEW);
    await until(() => switches.length > 0, { what: "the switch is reported" });
    expect(switches).toEqual([NEW]);
    watch.connectionLost();
    expect(await Promise.all([watch.findMaster(), watch.findMaster()])).toEqual([NEW, NEW]);
    expect(questions(sentinel)).toBe(before);
    watch.confirmed(NEW);
    // Repeating it changes nothing.
    sentinel.announce("main", NEW);
    await settle();
    expect(switches).toEqual([NEW]);
  });

  test("about an accepted server stay valid when the master is looked up again and the connection is then lost", async () => {
    const [sentinel, other] = [await newSentinel(), await newSentinel()];
    const watch = await following([sentinel, other]);
    sentinel.announce("main", NEW);
    await until(() => switches.length > 0, { what: "the switch is reported" });
    watch.connectionLost();
    watch.confirmed(await watch.findMaster());
    // Another lookup, for a separate connection.
    expect(await watch.findMaster()).toEqual(NEW);
    const before = questions(sentinel) + questions(other);
    watch.connectionLost();
    expect(await watch.findMaster()).toEqual(NEW);
    expect(questions(sentinel) + questions(other)).toBe(before);
  });

  test("that turn out wrong are not trusted again", async () => {
    const sentinel = await newSentinel();
    const watch = await following([sentinel]);
    sentinel.announce("main", NEW);
    await until(() => switches.length > 0, { what: "the switch is reported" });
    watch.connectionLost();
    expect(await watch.findMaster()).toEqual(NEW);
    watch.connectionLost();
    expect(await watch.findMaster()).toEqual(OLD);
  });

  test("end a running search", async () => {
    const [sentinel, silent] = [await newSentinel(), await newSentinel()];
    const watch = await following([sentinel, silent]);
    const client = sentinel.server.present.find(isListening)!;
    silent.mind.isSilent = true;
    sentinel.server.script = () => undefined;
    const found = watch.findMaster();
    await until(() => sentinel.server.present.length === 2, { what: "it is asked again" });
    client.say(`>3\r\n+message\r\n++switch-master\r\n${bulk(`main x 1 ${NEW.host} ${NEW.port}`)}`);
    expect(await found).toEqual(NEW);
  });

  test("that were not published are noticed by asking the sentinel every second", async () => {
    const sentinel = await newSentinel();
    await following([sentinel]);
    sentinel.mind.master = NEW;
    await clock.advance(999);
    expect(switches).toEqual([]);
    await clock.advance(1);
    await until(() => switches.length > 0, { what: "the switch is reported" });
    expect(switches).toEqual([NEW]);
  });

  test("are polled every second where subscribing is forbidden, which is reported once", async () => {
    const sentinel = await newSentinel({ mayListen: false });
    const watch = watchOf([sentinel]);
    watch.confirmed(await watch.findMaster());
    await until(() => reports.length > 0, { what: "it is reported" });
    await passUntil("it is back, without listening", () =>
      sentinel.server.present.some(({ commands }) => commands.length >= 2 && !isListening({ commands })),
    );
    await settle();
    sentinel.mind.master = NEW;
    await clock.advance(1_000);
    await until(() => switches.length > 0, { what: "the switch is reported" });
    expect(switches).toEqual([NEW]);
    expect(reports).toHaveLength(1);
    expect(reports[0]).toContain("NOPERM");
  });
});

describe("a lost subscription", () => {
  test("is replaced by one at another sentinel, and missed news is noticed", async () => {
    const [lost, other] = [await newSentinel(), await newSentinel()];
    await following([lost, other]);
    await lost.server.stop();
    other.mind.master = NEW;
    await passUntil("the other one is listened to", () => listeners(other) === 1);
    await until(() => switches.length > 0, { what: "the switch is reported" });
    expect(switches).toEqual([NEW]);
  });

  test("to a silent sentinel is dropped", async () => {
    const [silent, other] = [await newSentinel(), await newSentinel()];
    await following([silent, other]);
    silent.mind.isSilent = true;
    const client = silent.server.present.find(isListening)!;
    const before = client.commands.length;
    await clock.advance(1_000);
    await until(() => client.commands.length > before, { what: "it is asked whether it is there" });
    await clock.advance(1_000);
    await until(() => listeners(silent) === 0, { what: "it is given up" });
    await passUntil("the other one is listened to", () => listeners(other) === 1);
    expect(switches).toEqual([]);
  });

  test("is not replaced by one to a sentinel that lags behind: a third sentinel decides", async () => {
    const lost = await newSentinel({ master: NEW });
    const stale = await newSentinel({ master: OLD });
    const third = await newSentinel({ master: NEW });
    await following([lost, stale, third]);
    await lost.server.stop();
    await passUntil("the third is listened to", () => listeners(third) === 1 && listeners(stale) === 0);
    expect(stale.server.clients.some(isListening)).toBe(true);
    expect(switches).toEqual([]);
  });
});

describe("closing", () => {
  test("ends a search, the subscription and every timer", async () => {
    const [sentinel, silent] = [await newSentinel(), await newSentinel()];
    const watch = await following([sentinel, silent]);
    sentinel.mind.isSilent = true;
    const search = failure(watch.findMaster());
    await until(() => sentinel.server.present.length === 2, { what: "it is asked again" });
    watch.close();
    expect(await search).toMatchObject({ code: "DISCONNECTED" });
    expect(await failure(watch.findMaster())).toMatchObject({ code: "DISCONNECTED" });
    await until(() => sentinel.server.present.length === 0, { what: "no socket is left" });
    expect(clock.pending).toBe(0);
    await clock.advance(10_000);
    expect(sentinel.server.present.length + silent.server.present.length).toBe(0);
  });

  test("before the first lookup has nothing to do", async () => {
    const sentinel = await newSentinel();
    watchOf([sentinel]).close();
    await settle();
    expect(sentinel.server.clients).toHaveLength(0);
  });
});
