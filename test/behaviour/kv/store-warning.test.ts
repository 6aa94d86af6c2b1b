// A failing store is reported: one process warning when it starts to fail, one when it works again, unless errors are handled.
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { makeCertificates } from "../../support/certificate.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

/** Long timeouts: even on a busy machine only the failures that a test causes may happen. */
const PATIENT = { operationTimeout: 20, connectTimeout: 20 };

let warned: MockInstance<typeof process.emitWarning>;
beforeEach(() => {
  warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
});
afterEach(() => warned.mockRestore());

interface Warning {
  readonly message: string;
  readonly code: string;
  readonly detail?: string;
}

const warnings = (): Warning[] =>
  warned.mock.calls.map(
    ([message, options]) => ({ message: String(message), ...(options as object) }) as Warning,
  );

/** Twenty cached calls, one after the other. Returns how many loads ran. */
async function twentyCalls(cache: XCache): Promise<number> {
  let loads = 0;
  for (let at = 0; at < 20; at++) await cache.getOrSet("key", async () => ++loads);
  return loads;
}

test("a store that is down is reported once, with the reason and what to do, and once when it is back", async () => {
  await using server = await startRedis();
  const { port, url } = server;
  await server.kill();
  await using cache = new XCache({ ...PATIENT, kvUrl: url });
  expect(await twentyCalls(cache)).toBe(20);
  expect(warnings()).toEqual([
    {
      type: "XCacheWarning",
      code: "XCACHE_STORE_FAILED",
      message: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached: .*ECONNREFUSED`)),
      detail: expect.stringContaining("Check that the store is running"),
    },
  ]);
  await server.restart();
  const isBack = async (): Promise<boolean> => {
    await cache.getOrSet("key", async () => 1);
    return warnings().length > 1;
  };
  await until(isBack, { what: "the store works again" });
  expect(warnings().slice(1)).toEqual([
    {
      type: "XCacheWarning",
      code: "XCACHE_STORE_BACK",
      message: expect.stringMatching(/^the store is back after \d+\.\d s$/),
    },
  ]);
  await twentyCalls(cache);
  expect(warnings()).toHaveLength(2);
});

test("a wrong password is named, and never shown", async () => {
  await using server = await startRedis({ requirepass: "right" });
  await using cache = new XCache({ ...PATIENT, kvUrl: `redis://:s3cret-wrong@127.0.0.1:${server.port}` });
  expect(await twentyCalls(cache)).toBe(20);
  expect(warnings()).toHaveLength(1);
  const [{ message, detail } = { message: "", detail: "" }] = warnings();
  expect(message).toContain("WRONGPASS");
  expect(detail).toContain("Check the user and password");
  expect(message + detail).not.toContain("s3cret-wrong");
});

test("TLS against a plain port is named as such, and plain against a TLS port", async () => {
  await using plain = await startRedis();
  await using overTls = new XCache({
    ...PATIENT,
    kvUrl: `rediss://127.0.0.1:${plain.port}?tls_verify=false`,
  });
  await twentyCalls(overTls);
  expect(warnings()).toHaveLength(1);
  expect(warnings()[0]?.message).toMatch(/does not speak TLS|wrong version number/);
  expect(warnings()[0]?.detail).toContain("redis://");

  await using secure = await startRedis({ tls: await makeCertificates() });
  await using inPlain = new XCache({ ...PATIENT, kvUrl: `redis://localhost:${secure.port}` });
  await twentyCalls(inPlain);
  expect(warnings()).toHaveLength(2);
  expect(warnings()[1]?.message).toContain("TLS");
  expect(warnings()[1]?.detail).toContain("rediss://");
});

test("there is no warning if errors have a listener, even in another namespace of the cache", async () => {
  const server = await startRedis();
  await server.stop();
  await using cache = new XCache({ ...PATIENT, kvUrl: server.url });
  const heard = vi.fn();
  cache.on("error", heard);
  await twentyCalls(cache.namespace("other"));
  expect(warned).not.toHaveBeenCalled();
});
