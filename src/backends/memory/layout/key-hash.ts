// HalfSipHash-1-3 of a key's UTF-16 units with a 64-bit secret, so that an attacker cannot choose keys that collide.
// Most of the cost is reading the key unit by unit; a weaker mix would save a fifth.

/** `token` returns 64 random bits, see Clock.token. It is called on first use: node:crypto is slow to load. */
export class KeyHash {
  #token: (() => string) | undefined;
  #first = 0;
  #second = 0;

  constructor(token: () => string) {
    this.#token = token;
  }

  /** A signed 32-bit number, which V8 does not box. The same key has another hash for another owner. */
  of(key: string, owner: number): number {
    if (this.#token !== undefined) this.#draw(this.#token);
    return halfSipHash(key, this.#first, this.#second ^ owner);
  }

  #draw(token: () => string): void {
    const bytes = Buffer.from(token(), "latin1");
    this.#first = bytes.readInt32LE(0);
    this.#second = bytes.readInt32LE(4);
    this.#token = undefined;
  }
}

/** Rotations are written out: as calls they exceed the inlining budget of the compiler. */
function halfSipHash(key: string, first: number, second: number): number {
  // `| 0` tells V8 that these are 32-bit integers: a quarter faster.
  let a = first | 0;
  let b = second | 0;
  let c = first ^ 0x6c796765;
  let d = second ^ 0x74656462;
  const length = key.length;
  // Two units per word; then the odd one, if any, with the length; then three finalization rounds.
  let at = 0;
  for (; at + 1 < length; at += 2) {
    const word = key.charCodeAt(at) | (key.charCodeAt(at + 1) << 16);
    d ^= word;
    a = (a + b) | 0;
    b = ((b << 5) | (b >>> 27)) ^ a;
    a = (a << 16) | (a >>> 16);
    c = (c + d) | 0;
    d = ((d << 8) | (d >>> 24)) ^ c;
    a = (a + d) | 0;
    d = ((d << 7) | (d >>> 25)) ^ a;
    c = (c + b) | 0;
    b = ((b << 13) | (b >>> 19)) ^ c;
    c = (c << 16) | (c >>> 16);
    a ^= word;
  }
  let word = (length << 16) | (at < length ? key.charCodeAt(at) : 0);
  for (let round = 0; round < 4; round++) {
    d ^= word;
    a = (a + b) | 0;
    b = ((b << 5) | (b >>> 27)) ^ a;
    a = (a << 16) | (a >>> 16);
    c = (c + d) | 0;
    d = ((d << 8) | (d >>> 24)) ^ c;
    a = (a + d) | 0;
    d = ((d << 7) | (d >>> 25)) ^ a;
    c = (c + b) | 0;
    b = ((b << 13) | (b >>> 19)) ^ c;
    c = (c << 16) | (c >>> 16);
    a ^= word;
    if (round === 0) c ^= 0xff;
    word = 0;
  }
  return b ^ d;
}
