// Servers' descriptions of their cluster, in all the forms of their versions and settings.
import { describe, expect, test } from "vitest";
import { redirectIn, topologyOf } from "../../../../src/backends/kv/cluster/topology.ts";
import { type Reply, ReplyError } from "../../../../src/backends/kv/resp/reply.ts";

const server = (host: string | null, port: number, ...names: string[]): Reply => [
  host === null ? null : Buffer.from(host),
  port,
  Buffer.from(`id of ${port}`),
  ...(names.length === 0 ? [] : [names.map((name) => Buffer.from(name))]),
];

describe("the answer to CLUSTER SLOTS", () => {
  test("lists the master and the replicas of each range", () => {
    const reply = [
      [0, 5460, server("10.0.0.1", 6379), server("10.0.0.4", 6379)],
      [5461, 16383, server("10.0.0.2", 6380)],
    ];
    expect(topologyOf(reply, "seed")).toEqual({
      ranges: [
        { first: 0, last: 5460, master: { host: "10.0.0.1", port: 6379 }, masterId: "id of 6379" },
        { first: 5461, last: 16383, master: { host: "10.0.0.2", port: 6380 }, masterId: "id of 6380" },
      ],
      replicas: [{ host: "10.0.0.4", port: 6379 }],
    });
  });

  test.each<[string, Reply, string]>([
    ["an empty host", server("", 7000), "seed"],
    ["no host", server(null, 7000), "seed"],
    ["an unknown host", server("?", 7000), "seed"],
    ["no host but an address", server(null, 7000, "ip", "10.1.1.1"), "10.1.1.1"],
    ["a name and an address", server("one.example", 7000, "ip", "10.1.1.1"), "one.example"],
    ["an IPv6 address", server("fd00::1", 7000), "fd00::1"],
  ])("with %s resolves to the right host", (_, master, host) => {
    expect(topologyOf([[0, 1, master]], "seed").ranges[0]?.master).toEqual({ host, port: 7000 });
  });

  test.each<[string, Reply]>([
    ["OK", "OK"],
    ["a number", 1],
    ["a row without a master", [[0, 1]]],
    ["a slot beyond the last", [[0, 16384, server("h", 1)]]],
    ["a range backwards", [[2, 1, server("h", 1)]]],
    ["a master without a port", [[0, 1, [Buffer.from("h")]]]],
  ])("is rejected when it is %s", (_, reply) => {
    expect(() => topologyOf(reply, "seed")).toThrow(/CLUSTER SLOTS/);
  });
});

describe("a redirection", () => {
  test.each([
    ["MOVED 3999 127.0.0.1:6381", 3999, "127.0.0.1", 6381],
    ["ASK 0 one.example:6381", 0, "one.example", 6381],
    ["MOVED 16383 fd00::1:6381", 16383, "fd00::1", 6381],
    ["MOVED 3999 :6381", 3999, "asked", 6381],
    ["MOVED 3999 ?:6381", 3999, "asked", 6381],
  ])("%s is parsed", (message, slot, host, port) => {
    expect(redirectIn(new ReplyError(message), "asked")).toEqual({ slot, to: { host, port } });
  });

  test.each(["MOVED", "MOVED 3999", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1", "ASK 1 127.0.0.1"])(
    "%s is malformed",
    (message) => {
      expect(redirectIn(new ReplyError(message), "asked")).toBeUndefined();
    },
  );
});
