// The placement of keys: determined by the list of servers and by nothing else.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ring } from "../../../src/backends/memcached/ring.ts";
import { nameOf } from "../../../src/core/address/address.ts";

const servers = (...hosts: string[]) => hosts.map((host) => ({ host, port: 11_211 }));
const KEYS = Array.from({ length: 20_000 }, (_, at) => `xcache:user:${at}`);
const ownerIn = (ring: Ring, key: string): string => ring.names[ring.ownerOf(key)] as string;

describe("the ring", () => {
  it("keeps the placement of keys stable", () => {
    const ring = new Ring(servers("cache-1", "cache-2", "cache-3"));
    const owners = ["a", "b", "xcache:user:1", "xcache!n", "ä", "\ud800"].map((key) => ownerIn(ring, key));
    // A change here makes processes of a new version look for entries in other places than those of the old version.
    expect(owners).toEqual(
      ["cache-2", "cache-3", "cache-1", "cache-3", "cache-1", "cache-1"].map((name) => `${name}:11211`),
    );
    expect(ring.fingerprint.toString("hex")).toBe("c4a68de4a6a3");
  });

  it("does not depend on the order of the list or on the case of names", () => {
    const hosts = servers("one", "two", "three", "four");
    const ring = new Ring(hosts);
    fc.assert(
      fc.property(fc.shuffledSubarray(hosts, { minLength: 4 }), (shuffled) => {
        const other = new Ring(shuffled.map(({ host, port }) => ({ host: host.toUpperCase(), port })));
        expect(other.fingerprint).toEqual(ring.fingerprint);
        for (const key of KEYS.slice(0, 50)) expect(ownerIn(other, key)).toBe(ownerIn(ring, key));
      }),
    );
  });

  it("gives every server its share", () => {
    const ring = new Ring(servers("a", "b", "c", "d", "e"));
    const counts = new Map<string, number>();
    for (const key of KEYS) counts.set(ownerIn(ring, key), (counts.get(ownerIn(ring, key)) ?? 0) + 1);
    expect(counts.size).toBe(5);
    for (const count of counts.values()) {
      expect(count).toBeGreaterThan((KEYS.length / 5) * 0.75);
      expect(count).toBeLessThan((KEYS.length / 5) * 1.25);
    }
  });

  it("moves only the keys of the server that is removed", () => {
    const [whole, without] = [new Ring(servers("a", "b", "c", "d")), new Ring(servers("a", "b", "d"))];
    for (const key of KEYS) {
      if (ownerIn(whole, key) !== "c:11211") expect(ownerIn(without, key)).toBe(ownerIn(whole, key));
    }
  });

  it("has a different fingerprint for every set of servers", () => {
    const lists = [
      servers("a"),
      servers("b"),
      servers("a", "b"),
      [{ host: "a", port: 1 }],
      servers("a11211"),
    ];
    expect(new Set(lists.map((list) => new Ring(list).fingerprint.toString("hex"))).size).toBe(lists.length);
  });

  it("names servers as one would write them", () => {
    expect(nameOf({ host: "::1", port: 1 })).toBe("[::1]:1");
    expect(nameOf({ host: "Cache", port: 11_211 })).toBe("cache:11211");
  });
});
