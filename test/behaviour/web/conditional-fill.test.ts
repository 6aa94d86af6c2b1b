// Conditional requests that find nothing stored: the handler, which does not see their conditions, sends a body in parts.
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { ADAPTERS, type Answer, type Options, type Script, subject } from "./subject.ts";

const ETAG = '"of the handler"';
const HALF = "half of the page, ";
const PAGE = HALF + HALF;

/** A body in two parts; the second waits until it is released. */
function inParts() {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  async function* parts(): AsyncGenerator<string> {
    yield HALF;
    begin();
    await released;
    yield HALF;
  }
  return { body: Readable.from(parts(), { objectMode: false }), begun, release };
}

describe.each(ADAPTERS)("on %s", (adapter) => {
  async function open(answer: Answer = {}, options: Options = {}) {
    const bodies = [inParts(), inParts()];
    const script: Script = ({ call }) => ({
      headers: { "content-type": "text/plain", etag: ETAG, ...answer.headers },
      body: bodies[call - 1]?.body ?? PAGE,
    });
    const { ask, calls, clock } = await subject(adapter, script, options);
    const get = async (headers: Record<string, string> = {}) => {
      const { status, body, headers: fields } = await ask("/page", { headers });
      return { status, body, etag: fields.etag, cacheStatus: String(fields["cache-status"]) };
    };
    return { bodies, get, calls, clock };
  }

  const condition = { "if-none-match": ETAG };

  test("the one that fills the cache gets 304, and others the stored response", async () => {
    const { bodies, get, calls } = await open();
    const first = get(condition);
    await bodies[0]!.begun;
    const [second, third] = [get(), get(condition)];
    bodies[0]!.release();
    expect(await first).toMatchObject({ status: 304, body: "", etag: ETAG });
    expect(await second).toMatchObject({ status: 200, body: PAGE, etag: ETAG });
    expect(await third).toMatchObject({ status: 304, body: "", etag: ETAG });
    expect(await get()).toMatchObject({ status: 200, body: PAGE });
    expect(calls).toHaveLength(1);
  });

  test("one that does not hold gets the response that it stores", async () => {
    const { bodies, get, calls } = await open();
    const first = get({ "if-none-match": '"another"' });
    await bodies[0]!.begun;
    const waiting = get(condition);
    bodies[0]!.release();
    expect(await first).toMatchObject({ status: 200, body: PAGE });
    expect(await waiting).toMatchObject({ status: 304, body: "" });
    expect(calls).toHaveLength(1);
  });

  test("If-Modified-Since counts as well", async () => {
    const date = "Tue, 14 Nov 2023 22:13:20 GMT";
    const { bodies, get, calls } = await open({ headers: { "last-modified": date } });
    bodies[0]!.release();
    expect(await get({ "if-modified-since": date })).toMatchObject({ status: 304, body: "" });
    expect(await get()).toMatchObject({ status: 200, body: PAGE });
    expect(calls).toHaveLength(1);
  });

  test("a stream gets its 304 after streamAfter, and is not stored", async () => {
    const { bodies, get, calls, clock } = await open();
    const first = get(condition);
    await bodies[0]!.begun;
    let isAnswered = false;
    void first.then(() => {
      isAnswered = true;
    });
    // The head may be judged only after the handler has begun its body.
    const passes = async (): Promise<boolean> => {
      await clock.advance(1_000);
      return isAnswered;
    };
    await until(passes, { what: "the answer" });
    expect(await first).toMatchObject({ status: 304, body: "" });
    await until(() => bodies[0]!.body.destroyed || bodies[0]!.body.isPaused(), { what: "the handler stops" });
    bodies[0]!.release();
    bodies[1]!.release();
    expect(await get()).toMatchObject({ status: 200, body: PAGE });
    expect(calls).toHaveLength(2);
  });

  test("a body that is too large gets its 304 at once, and is not stored", async () => {
    const { bodies, get, calls } = await open(
      { headers: { "content-length": String(PAGE.length) } },
      { maxBodyBytes: 20 },
    );
    expect(await get(condition)).toMatchObject({ status: 304, body: "", etag: ETAG });
    bodies[0]!.release();
    bodies[1]!.release();
    expect(await get()).toMatchObject({ status: 200, body: PAGE });
    expect(calls).toHaveLength(2);
  });

  test("a response for one client gets its 304 at once, and is not stored", async () => {
    const { bodies, get, calls } = await open({ headers: { "cache-control": "private" } });
    expect(await get(condition)).toMatchObject({ status: 304, body: "", etag: ETAG });
    bodies[0]!.release();
    bodies[1]!.release();
    expect(await get()).toMatchObject({ status: 200, body: PAGE });
    expect(calls).toHaveLength(2);
  });
});
