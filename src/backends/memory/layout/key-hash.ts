// HalfSipHash-1-3 of a key's UTF-16 units under a secret of 64 bits: nobody outside can choose keys that collide.
// Most of its cost is reading the key unit by unit; a weaker mix would save a fifth.

/** `token` is 64 random bits, see Clock.token. */
export class KeyHash {
  readonly #first: number;
  readonly #second: number;

  constructor(token: string) {
    const bytes = Buffer.from(token, "latin1");
    this.#first = bytes.readInt32LE(0);
    this.#second = bytes.readInt32LE(4);
  }

  /** 32 bits, signed: such a number needs no object of its own. The same key of another owner has another hash. */
  of(key: string, owner: number): number {
    return halfSipHash(key, this.#first, this.#second ^ owner);
  }
}

/** Rotations are written out: as calls they exceed what the compiler is willing to inline. */
function halfSipHash(key: string, first: number, second: number): number {
  // `| 0` says at once that these are whole numbers of 32 bits, a quarter faster.
  let a = first | 0;
  let b = second | 0;
  let c = first ^ 0x6c796765;
  let d = second ^ 0x74656462;
  const length = key.length;
  // Two units a word; then the odd one, if there is one, and the length; then three rounds of nothing.
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
