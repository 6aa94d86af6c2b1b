import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KeyHash } from "../../../../src/backends/memory/layout/key-hash.ts";

// HalfSipHash as published (Aumasson and Bernstein, the 32-bit member of the SipHash family), word by word.

const rotated = (value: number, bits: number): number => ((value << bits) | (value >>> (32 - bits))) >>> 0;
const sum = (a: number, b: number): number => (a + b) % 2 ** 32;
const xor = (a: number, b: number): number => (a ^ b) >>> 0;

type State = [number, number, number, number];

function sipRound(v: State): void {
  v[0] = sum(v[0], v[1]);
  v[1] = xor(rotated(v[1], 5), v[0]);
  v[0] = rotated(v[0], 16);
  v[2] = sum(v[2], v[3]);
  v[3] = xor(rotated(v[3], 8), v[2]);
  v[0] = sum(v[0], v[3]);
  v[3] = xor(rotated(v[3], 7), v[0]);
  v[2] = sum(v[2], v[1]);
  v[1] = xor(rotated(v[1], 13), v[2]);
  v[2] = rotated(v[2], 16);
}

interface Rounds {
  readonly perWord: number;
  readonly atEnd: number;
}

function halfSipHash(words: readonly number[], k0: number, k1: number, rounds: Rounds): number {
  const v: State = [k0, k1, xor(0x6c796765, k0), xor(0x74656462, k1)];
  for (const word of words) {
    v[3] = xor(v[3], word);
    for (let round = 0; round < rounds.perWord; round++) sipRound(v);
    v[0] = xor(v[0], word);
  }
  v[2] = xor(v[2], 0xff);
  for (let round = 0; round < rounds.atEnd; round++) sipRound(v);
  return xor(v[1], v[3]);
}

/** The words as the publication makes them from bytes: four bytes each; the last has the length on top. */
function wordsOfBytes(bytes: Uint8Array): number[] {
  const padded = Buffer.alloc(Math.floor(bytes.length / 4) * 4 + 4);
  padded.set(bytes);
  padded.writeUInt8(bytes.length % 256, padded.length - 1);
  return Array.from({ length: padded.length / 4 }, (_, at) => padded.readUInt32LE(at * 4));
}

/** The words made from a key: two code units each; the last has the odd unit and the length. */
function wordsOfKey(key: string): number[] {
  const words: number[] = [];
  for (let at = 0; at + 1 < key.length; at += 2) {
    words.push(key.charCodeAt(at) + key.charCodeAt(at + 1) * 0x1_0000);
  }
  const odd = key.length % 2 === 1 ? key.charCodeAt(key.length - 1) : 0;
  return [...words, odd + (key.length % 0x1_0000) * 0x1_0000];
}

// The first of the authors' vectors for HalfSipHash-2-4 with 32 bits: key 00..07, message 00, 01, ... of that length.
const PUBLISHED = [
  0x5b9f35a9, 0xb85a4727, 0x03a662fa, 0x04e7fe8a, 0x89466e2a, 0x69b6fac5, 0x23fc6358, 0xc563cf8b, 0x8f84b8d0,
  0x79e706f8, 0x3479b094, 0x50300808, 0x2f87f057, 0xff63e677, 0x7cf8ffd6, 0x972bfe74,
];

const tokenOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");
const hash = new KeyHash(() => tokenOf(Uint8Array.of(3, 1, 4, 1, 5, 9, 2, 6)));

test("the algorithm in this file is the published one", () => {
  for (const [length, expected] of PUBLISHED.entries()) {
    const words = wordsOfBytes(Uint8Array.from({ length }, (_, at) => at));
    expect(halfSipHash(words, 0x03020100, 0x07060504, { perWord: 2, atEnd: 4 })).toBe(expected);
  }
});

describe("the hash of a key", () => {
  test("is HalfSipHash-1-3 of its code units under the token and the owner, as a signed number", () => {
    const unit = fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0x20, max: 0x7e }));
    const key = fc.array(unit, { maxLength: 80, size: "max" }).map((units) => String.fromCharCode(...units));
    const token = fc.uint8Array({ minLength: 8, maxLength: 8 });
    const owner = fc.oneof(fc.nat(100), fc.nat(2 ** 31 - 1));
    fc.assert(
      fc.property(key, token, owner, (name, secret, number) => {
        const bytes = Buffer.from(secret);
        const k1 = xor(bytes.readUInt32LE(4), number);
        const expected = halfSipHash(wordsOfKey(name), bytes.readUInt32LE(0), k1, { perWord: 1, atEnd: 3 });
        expect(new KeyHash(() => tokenOf(secret)).of(name, number)).toBe(expected | 0);
      }),
      { numRuns: 500 },
    );
  });

  test("covers every code unit of a long key", () => {
    const bytes = Buffer.alloc(8, 7);
    for (const length of [65_534, 65_535, 65_536, 65_537, 70_001]) {
      const key = "xyz".repeat(length).slice(0, length);
      const words = wordsOfKey(key);
      const expected = halfSipHash(words, bytes.readUInt32LE(0), bytes.readUInt32LE(4), {
        perWord: 1,
        atEnd: 3,
      });
      expect(new KeyHash(() => tokenOf(bytes)).of(key, 0)).toBe(expected | 0);
    }
  });

  test("differs by owner, and by the end, the beginning and the length of long keys", () => {
    const long = "x".repeat(5_000);
    const hashes = [
      hash.of("a", 0),
      hash.of("a", 1),
      hash.of(long, 0),
      hash.of(`${long}x`, 0),
      hash.of(`${long.slice(1)}y`, 0),
      hash.of(`y${long.slice(1)}`, 0),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("differs by owner for almost every key", () => {
    let same = 0;
    for (let at = 0; at < 10_000; at++) if (hash.of(`k${at}`, at) === hash.of(`k${at}`, at + 1)) same++;
    expect(same).toBeLessThan(3);
  });

  test("differs by token, and is stable under one", () => {
    const other = new KeyHash(() => tokenOf(Uint8Array.of(3, 1, 4, 1, 5, 9, 2, 7)));
    expect(hash.of("a", 0)).toBe(hash.of("a", 0));
    expect(hash.of("a", 0)).not.toBe(other.of("a", 0));
  });

  test("distinguishes keys that end in null characters", () => {
    const keys = ["", "\0", "\0\0", "\0\0\0", "a", "a\0", "a\0\0"];
    expect(new Set(keys.map((key) => hash.of(key, 0))).size).toBe(keys.length);
  });

  test("is spread over all its bits", () => {
    const places = new Set<number>();
    const tops = new Set<number>();
    for (let at = 0; at < 4_096; at++) {
      const value = hash.of(`item:${at}`, 0);
      places.add(value & 4_095);
      tops.add(value >>> 24);
    }
    // At random, 4,096 fall into 2,589 places.
    expect(places.size).toBeGreaterThan(2_500);
    expect(tops.size).toBe(256);
  });
});
