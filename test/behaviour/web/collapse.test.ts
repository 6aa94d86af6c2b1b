// Concurrent requests: the handler runs once, and no request gets an unstorable or truncated response of another.
import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { settle } from "../../../src/testing/manual-clock.ts";
import { until } from "../../support/until.ts";
import { ADAPTERS, type Answer, subject } from "./subject.ts";

/** Answers that a test lets go one by one. */
class Held {
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly script = (): Promise<Answer> => new Promise((resolve) => this.#waiting.push(resolve));

  async release(answer: Answer): Promise<void> {
    await until(() => this.#waiting.length > 0, { what: "a call of the handler" });
    this.#waiting.shift()!(answer);
  }

  get waiting(): number {
    return this.#waiting.length;
  }
}

/** Lets what was sent arrive. */
async function arrive(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await settle();
}

describe.each(ADAPTERS)("on %s", (adapter) => {
  test("concurrent misses of one key run the handler once", async () => {
    const held = new Held();
    const { ask, calls } = await subject(adapter, held.script);
    const answers = [1, 2, 3, 4, 5].map(() => ask("/"));
    await until(() => calls.length === 1, { what: "the first call" });
    await arrive();
    await held.release({ body: "one" });
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(Array(5).fill("one"));
    expect(calls).toHaveLength(1);
  });

  test("waiting requests run their own handler if the response was not storable, and later ones do not wait", async () => {
    const held = new Held();
    const { ask, calls } = await subject(adapter, held.script);
    const answers = [ask("/"), ask("/"), ask("/")];
    await until(() => calls.length === 1, { what: "the first call" });
    await arrive();
    await held.release({ headers: { "cache-control": "private" }, body: "first" });
    await until(() => calls.length === 3, { what: "a call for each of the others" });
    await held.release({ headers: { "cache-control": "private" }, body: "second" });
    await held.release({ headers: { "cache-control": "private" }, body: "third" });
    expect((await Promise.all(answers)).map(({ body }) => body).sort()).toEqual(["first", "second", "third"]);
    const later = [ask("/"), ask("/"), ask("/")];
    await until(() => calls.length === 6, { what: "three calls at once" });
    for (const body of ["a", "b", "c"]) await held.release({ headers: { "cache-control": "private" }, body });
    await Promise.all(later);
  });

  test("requests for different variants wait for one call, then make their own", async () => {
    const held = new Held();
    const { ask, calls } = await subject(adapter, held.script);
    const answers = ["de", "en", "de"].map((language) =>
      ask("/", { headers: { "accept-language": language } }),
    );
    await until(() => calls.length === 1, { what: "the first call" });
    await arrive();
    await held.release({ headers: { vary: "accept-language" }, body: "first" });
    await until(() => calls.length === 2, { what: "the second call" });
    await held.release({ headers: { vary: "accept-language" }, body: "second" });
    const bodies = (await Promise.all(answers)).map(({ body }) => body);
    expect(bodies[0]).toBe(bodies[2]);
    expect(new Set(bodies)).toEqual(new Set(["first", "second"]));
    expect(calls).toHaveLength(2);
  });

  test("a request that comes after an invalidation does not join an older call", async () => {
    const held = new Held();
    const { ask, calls, cache } = await subject(adapter, held.script, { tags: ["all"] });
    const before = ask("/");
    await until(() => calls.length === 1, { what: "the first call" });
    await cache.invalidateTags("all");
    const after = ask("/");
    await until(() => calls.length === 2, { what: "the second call" });
    await held.release({ body: "old" });
    await held.release({ body: "new" });
    expect([(await before).body, (await after).body]).toEqual(["old", "new"]);
    expect((await ask("/")).body).toBe("new");
  });

  test("an invalidation during the call is not lost, even by tags that only the response names", async () => {
    for (const vary of [{}, { vary: "accept" }]) {
      const held = new Held();
      const { ask, calls, cache } = await subject(adapter, held.script);
      const first = ask("/");
      await until(() => calls.length === 1, { what: "the first call" });
      await cache.invalidateTags("product:7");
      await held.release({ headers: { ...vary, "cache-tag": "product:7" }, body: "old" });
      await first;
      const second = ask("/");
      await held.release({ headers: { ...vary, "cache-tag": "product:7" }, body: "new" });
      expect((await second).body).toBe("new");
    }
  });

  test("an unsafe request during the call is not lost", async () => {
    const held = new Held();
    const { ask, calls } = await subject(adapter, (seen) =>
      seen.method === "POST" ? { body: "changed" } : held.script(),
    );
    const first = ask("/");
    await until(() => calls.length === 1, { what: "the first call" });
    await ask("/", { method: "POST" });
    await held.release({ body: "old" });
    await first;
    const second = ask("/");
    await held.release({ body: "new" });
    expect((await second).body).toBe("new");
  });
});

describe.each(["node", "express", "fastify", "koa"] as const)("on %s", (adapter) => {
  test("a disconnecting client cancels no other request", async () => {
    const held = new Held();
    const { ask, calls, port } = await subject(adapter, held.script);
    const leaving = httpRequest({
      host: "127.0.0.1",
      port,
      path: "/",
      headers: { host: "site.test" },
      agent: false,
    });
    leaving.on("error", () => {});
    leaving.end();
    await until(() => calls.length === 1, { what: "the call for the client that leaves" });
    const others = [ask("/"), ask("/"), ask("/")];
    await arrive();
    expect(calls).toHaveLength(1);
    leaving.destroy();
    await until(() => calls.length === 2, { what: "a call for one of the others" });
    await held.release({ body: "for nobody" });
    await held.release({ body: "for all" });
    expect((await Promise.all(others)).map(({ body }) => body)).toEqual(Array(3).fill("for all"));
    expect(calls).toHaveLength(2);
  });
});
