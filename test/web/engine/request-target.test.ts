// The key of a request does not depend on earlier requests.
import { describe, expect, test } from "vitest";
import type { ReadyResponse } from "../../../src/web/engine/ready-response.ts";
import { RequestTargets } from "../../../src/web/engine/request-target.ts";
import type { RequestInfo } from "../../../src/web/message/exchange.ts";
import { originOf } from "../../../src/web/protocol/url-key.ts";

/** The limits of request-target.ts: number of remembered targets, and their length. */
const MAX_TARGETS = 1_024;
const MAX_TARGET_LENGTH = 256;

const request = (target: string, host = "a.test", isSecure = false): RequestInfo =>
  ({ isSecure, host, target, selectors: "" }) as RequestInfo;

const requestKey = ({ isSecure, host, target }: RequestInfo): string => originOf(isSecure, host) + target;

describe("the key", () => {
  const origins = [
    ["", false],
    ["a.test", false],
    ["a.test", true],
    ["b.test", false],
    ["A.Test", false],
    ["a.test:81", false],
  ] as const;
  const paths = [
    "",
    "/",
    "/x",
    "/X",
    "*",
    `/${"y".repeat(MAX_TARGET_LENGTH)}`,
    `/${"y".repeat(MAX_TARGET_LENGTH)}z`,
  ];

  test("does not depend on the previous request", () => {
    const all = origins.flatMap(([host, isSecure]) => paths.map((target) => request(target, host, isSecure)));
    const targets = new RequestTargets();
    for (const before of all) {
      for (const after of all) {
        expect(targets.of(before).key).toBe(requestKey(before));
        expect(targets.of(after).key).toBe(requestKey(after));
      }
    }
  });

  test("ignores the case of the host and differs between origins", () => {
    const targets = new RequestTargets();
    const keys = origins.map(([host, isSecure]) => targets.of(request("/x", host, isSecure)).key);
    expect(keys[4]).toBe(keys[1]);
    expect(new Set(keys).size).toBe(origins.length - 1);
  });

  test("is correct beyond the number of remembered targets", () => {
    const targets = new RequestTargets();
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n <= MAX_TARGETS; n++) {
        expect(targets.of(request(`/${n}`)).key).toBe(requestKey(request(`/${n}`)));
      }
    }
  });
});

describe("the ready response last found", () => {
  const ready = {} as ReadyResponse;

  test("is available to the next request for the target, but not from another origin", () => {
    const targets = new RequestTargets();
    targets.of(request("/")).ready = ready;
    expect(targets.of(request("/")).ready).toBe(ready);
    expect(targets.of(request("/x")).ready).toBeUndefined();
    expect(targets.of(request("/", "b.test")).ready).toBeUndefined();
    expect(targets.of(request("/", "b.test", true)).ready).toBeUndefined();
    expect(targets.of(request("/")).ready).toBeUndefined();
  });

  test("is kept for a limited number of targets, and not for long ones", () => {
    const targets = new RequestTargets();
    for (const length of [MAX_TARGET_LENGTH, MAX_TARGET_LENGTH + 1]) {
      const long = request("x".repeat(length));
      targets.of(long).ready = ready;
      expect(targets.of(long).ready).toBe(length > MAX_TARGET_LENGTH ? undefined : ready);
    }
    targets.of(request("/")).ready = ready;
    for (let n = 0; n < MAX_TARGETS; n++) targets.of(request(`/${n}`));
    expect(targets.of(request("/")).ready).toBeUndefined();
  });
});
