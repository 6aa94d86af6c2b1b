// The key of a request is the same whatever was asked for before it.
import { describe, expect, test } from "vitest";
import type { ReadyResponse } from "../../../src/web/engine/ready-response.ts";
import { RequestTargets } from "../../../src/web/engine/request-target.ts";
import type { RequestFacts } from "../../../src/web/message/exchange.ts";
import { requestKey } from "../../../src/web/protocol/url-key.ts";

/** How many targets are remembered, and how long they may be. */
const MOST = 1_024;
const LONGEST = 256;

const request = (target: string, host = "a.test", isSecure = false): RequestFacts =>
  ({ isSecure, host, target }) as RequestFacts;

describe("the key", () => {
  const origins = [
    ["", false],
    ["a.test", false],
    ["a.test", true],
    ["b.test", false],
    ["A.Test", false],
    ["a.test:81", false],
  ] as const;
  const targets = ["", "/", "/x", "/X", "*", `/${"y".repeat(LONGEST)}`, `/${"y".repeat(LONGEST)}z`];

  test("is that of the request after any other", () => {
    const all = origins.flatMap(([host, isSecure]) =>
      targets.map((target) => request(target, host, isSecure)),
    );
    const addresses = new RequestTargets();
    for (const before of all) {
      for (const after of all) {
        expect(addresses.of(before).key).toBe(requestKey(before));
        expect(addresses.of(after).key).toBe(requestKey(after));
      }
    }
  });

  test("is one for a host in any case of its letters, and another for every other origin", () => {
    const addresses = new RequestTargets();
    const keys = origins.map(([host, isSecure]) => addresses.of(request("/x", host, isSecure)).key);
    expect(keys[4]).toBe(keys[1]);
    expect(new Set(keys).size).toBe(origins.length - 1);
  });

  test("is right for more targets than are remembered", () => {
    const addresses = new RequestTargets();
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n <= MOST; n++) {
        expect(addresses.of(request(`/${n}`)).key).toBe(requestKey(request(`/${n}`)));
      }
    }
  });
});

describe("what was found under it last", () => {
  const prepared = {} as ReadyResponse;

  test("is known to the next request for the same, and to none of another origin", () => {
    const addresses = new RequestTargets();
    addresses.of(request("/")).prepared = prepared;
    expect(addresses.of(request("/")).prepared).toBe(prepared);
    expect(addresses.of(request("/x")).prepared).toBeUndefined();
    expect(addresses.of(request("/", "b.test")).prepared).toBeUndefined();
    expect(addresses.of(request("/", "b.test", true)).prepared).toBeUndefined();
    expect(addresses.of(request("/")).prepared).toBeUndefined();
  });

  test("is kept for so many targets only, and for none that is long", () => {
    const addresses = new RequestTargets();
    for (const length of [LONGEST, LONGEST + 1]) {
      const long = request("x".repeat(length));
      addresses.of(long).prepared = prepared;
      expect(addresses.of(long).prepared).toBe(length > LONGEST ? undefined : prepared);
    }
    addresses.of(request("/")).prepared = prepared;
    for (let n = 0; n < MOST; n++) addresses.of(request(`/${n}`));
    expect(addresses.of(request("/")).prepared).toBeUndefined();
  });
});
