// Logins, databases and unix sockets; what the error of a refusal says, and what it must not reveal.
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConnectionError, type XCacheError } from "../../../src/core/errors.ts";
import { FakeServer } from "../../support/kv/fake-server.ts";
import { type OpenedBackend, opened } from "../../support/kv/opened.ts";
import { failure, works } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const PASSWORD = "p@ss w/ord?#%:&=+\u00e9";
const WRONG = "s3cret-but-wrong";

let locked: RedisServer;
let users: RedisServer;

beforeAll(async () => {
  [locked, users] = await Promise.all([
    startRedis({ requirepass: PASSWORD, unixsocket: true }),
    startRedis({
      acl: [
        "user default off",
        `user app on >${WRONG}-not ~app:* &* +@all`,
        `user reader on >reader-secret ~* &* +@all -select`,
        `user gone off >gone-secret ~* +@all`,
      ],
    }),
  ]);
});
afterAll(async () => {
  await Promise.all([locked.stop(), users.stop()]);
});

const url = (server: RedisServer, login: string, rest = ""): string =>
  `redis://${login === "" ? "" : `${login}@`}127.0.0.1:${server.port}${rest}`;

const secret = encodeURIComponent;

async function reaches(address: string, key?: string): Promise<boolean> {
  await using backend = opened(address);
  return await works(backend, key);
}

/** Every text form of an error that might be printed. */
const printed = (error: XCacheError): string =>
  [
    String(error),
    error.stack,
    error.hint,
    JSON.stringify(error),
    inspect(error, { depth: 20, showHidden: true, getters: true }),
  ].join("\n");

/** The error with which connecting, and every later call, fails promptly. */
async function refusal(address: string): Promise<XCacheError> {
  await using backend = opened(address);
  const began = performance.now();
  const error = await failure(backend.connect());
  const later = await Promise.all([failure(backend.read("k")), failure(backend.ping())]);
  expect(performance.now() - began).toBeLessThan(soon(1_000));
  for (const each of [error, ...later]) {
    expect(each).toBeInstanceOf(ConnectionError);
    expect(printed(each)).not.toMatch(/secret|s3cret|p@ss|p%40ss/);
  }
  expect(inspect(backend, { depth: 20, showHidden: true })).not.toMatch(/secret|s3cret|p@ss|p%40ss/);
  return error;
}

describe("a password", () => {
  test("of any characters opens the server", async () => {
    expect(await reaches(url(locked, `:${secret(PASSWORD)}`))).toBe(true);
    expect(await reaches(url(locked, `default:${secret(PASSWORD)}`))).toBe(true);
  });

  test.each([
    ["wrong", `:${WRONG}`, "WRONGPASS"],
    ["missing", "", "NOAUTH"],
    ["another user's", `nobody:${secret(PASSWORD)}`, "WRONGPASS"],
  ])("that is %s is refused at once, with a hint and without the password", async (_, login, code) => {
    const error = await refusal(url(locked, login));
    expect(error.message).toContain(code);
    expect(error.message).toContain(`127.0.0.1:${locked.port}`);
    if (login === "") expect(error.message).toContain("requires a password, and none was given");
    expect(error.hint).toBe("Check the user and password, in kv_url or as username and password.");
  });

  test("is not shown when the server rejects the login command and echoes it", async () => {
    await using old = await startRedis({ requirepass: WRONG, args: ["--rename-command", "HELLO", ""] });
    const reports: Error[] = [];
    await using backend = opened(url(old, `:${WRONG}`), { report: (error) => reports.push(error) });
    await backend.connect();
    expect(reports.map(({ message }) => message)).toEqual([expect.stringContaining("HELLO")]);
    for (const each of reports) expect(inspect(each, { depth: 20 })).not.toContain(WRONG);
    expect(inspect(backend, { depth: 20, showHidden: true })).not.toContain(WRONG);
  });

  test("of a sentinel is not shown when the sentinel echoes it", async () => {
    await using sentinel = await FakeServer.start(([name, ...args]) => {
      const repeated = args.map((arg) => `'${arg}' `).join("");
      return `-ERR unknown command '${name}', with args beginning with: ${repeated}\r\n`;
    });
    const error = await refusal(`redis+sentinel://127.0.0.1:${sentinel.port}/m?sentinel_password=${WRONG}`);
    expect(sentinel.commands[0]).toContain(WRONG);
    expect(error.message).toContain("unknown command 'AUTH'");
  });

  test("that the server does not require does no harm", async () => {
    await using open = await startRedis();
    expect(await reaches(url(open, ":anything"))).toBe(true);
  });

  test("that becomes valid later is enough: the backend connects by itself", async () => {
    await using changing = await startRedis();
    await using backend = opened(url(changing, ":new-secret"));
    await changing.cli("CONFIG", "SET", "requirepass", "old-secret");
    expect((await failure(backend.connect())).message).toContain("WRONGPASS");
    await changing.cli(
      "--pass",
      "old-secret",
      "--no-auth-warning",
      "CONFIG",
      "SET",
      "requirepass",
      "new-secret",
    );
    await until(() => works(backend), { what: "the backend logs in", timeoutMs: 5_000 });
  });
});

describe("a user", () => {
  test("logs in by name", async () => {
    expect(await reaches(url(users, `app:${WRONG}-not`), "app:1")).toBe(true);
  });

  test.each([
    ["with a wrong password", `app:${WRONG}`],
    ["that does not exist", "nobody:some-secret"],
    ["that is switched off", "gone:gone-secret"],
    ["that is not named", ""],
  ])("%s is refused at once, with a hint and without the password", async (_, login) => {
    const error = await refusal(url(users, login));
    expect(error.hint).toBe("Check the user and password, in kv_url or as username and password.");
  });

  test("without the right to select a database gets an error that says so", async () => {
    expect(await reaches(url(users, "reader:reader-secret"))).toBe(true);
    const error = await refusal(url(users, "reader:reader-secret", "/3"));
    expect(error.message).toContain("NOPERM");
    expect(error.message).toContain("select");
    expect(error.hint).toContain("Allow the command");
  });

  test("gets a refusal as an error of the call, not of the connection", async () => {
    await using backend = opened(url(users, `app:${WRONG}-not`));
    const error = await failure(works(backend, "foreign"));
    expect(error.message).toContain("NOPERM");
    expect(printed(error)).not.toContain(WRONG);
    expect(await works(backend, "app:2")).toBe(true);
  });
});

describe("a database", () => {
  const at = (rest: string): OpenedBackend => opened(url(locked, `:${secret(PASSWORD)}`, rest));

  test("is selected by its number, and has its own records", async () => {
    await using first = at("");
    await using third = at("/3");
    await using alsoThird = at("?db=3");
    expect(await works(third, "only-in-3")).toBe(true);
    expect(await alsoThird.read("only-in-3")).toBeDefined();
    expect(await first.read("only-in-3")).toBeUndefined();
  });

  test("is selected again after the connection was lost", async () => {
    await using backend = at("/5");
    expect(await works(backend, "before")).toBe(true);
    await locked.cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await until(() => backend.read("before"), { what: "the record is read again", timeoutMs: 5_000 });
    expect(await locked.cli("-n", "5", "EXISTS", "before")).toBe("1");
    expect(await locked.cli("-n", "0", "EXISTS", "before")).toBe("0");
  });

  test("that the server does not have is refused, with a hint", async () => {
    const error = await refusal(url(locked, `:${secret(PASSWORD)}`, "/999"));
    expect(error.message).toContain("out of range");
    expect(error.hint).toContain("database number");
  });
});

describe("a unix socket", () => {
  test("reaches the server, with password and database", async () => {
    await using backend = opened(`${locked.unixUrl}?db=7`);
    expect(await works(backend, "through-the-socket")).toBe(true);
    expect(await locked.cli("-n", "7", "EXISTS", "through-the-socket")).toBe("1");
  });

  test("whose server refuses the password gives an error without the password", async () => {
    const path = join(locked.folder, "redis.sock");
    const error = await refusal(`unix://:${WRONG}@${path}`);
    expect(error.message).toContain(path);
    expect(error.hint).toBe("Check the user and password, in kv_url or as username and password.");
  });

  test("that does not exist gives an error that names it", async () => {
    await using backend = opened("unix:///nowhere/redis.sock");
    const error = await failure(backend.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("/nowhere/redis.sock");
  });
});
