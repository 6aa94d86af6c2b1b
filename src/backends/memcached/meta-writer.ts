// Writes meta commands one after another, so that the commands of a tick are sent in one write.
import { type ItemKeys, LONGEST_ITEM_KEY } from "./item-key.ts";

/** Data that writes its own bytes. */
export interface SelfWriting {
  readonly length: number;
  writeTo(out: Buffer, at: number): void;
}

const SIZE = 16 * 1024;
/** A buffer with less space left is not worth keeping. */
const MIN_SPACE = 2 * 1024;
/** Space for a verb, a key, a length and flags. */
const LINE = LONGEST_ITEM_KEY + 128;
const CR = 13;
const LF = 10;
const SPACE = 32;

export class MetaWriter {
  readonly #keys: ItemKeys;
  #out = Buffer.allocUnsafeSlow(SIZE);
  /** Bytes before it were taken and are not touched again. */
  #from = 0;
  #at = 0;

  constructor(keys: ItemKeys) {
    this.#keys = keys;
  }

  /** `verb` and `flags` never come from a user: they are sent as they are. */
  command(verb: "mg" | "md", key: string, flags: string): void {
    this.#reserve(LINE);
    this.#key(verb, key);
    this.#text(flags);
    this.#lineEnd();
  }

  /** Writes nothing if `data` throws. */
  store(key: string, flags: string, data: Uint8Array | SelfWriting): void {
    this.#reserve(LINE + data.length + 2);
    const before = this.#at;
    this.#key("ms", key);
    this.#out[this.#at++] = SPACE;
    this.#text(String(data.length));
    this.#text(flags);
    this.#lineEnd();
    try {
      if (data instanceof Uint8Array) this.#out.set(data, this.#at);
      else data.writeTo(this.#out, this.#at);
    } catch (error) {
      this.#at = before;
      throw error;
    }
    this.#at += data.length;
    this.#lineEnd();
  }

  /** A command without a key, such as `mn`. */
  line(text: string): void {
    this.#reserve(LINE);
    this.#text(text);
    this.#lineEnd();
  }

  /** Bytes written since the last `take`. */
  get length(): number {
    return this.#at - this.#from;
  }

  /** Everything written since the last call; the caller owns it. */
  take(): Buffer {
    const taken = this.#out.subarray(this.#from, this.#at);
    if (this.#out.length > SIZE || this.#out.length - this.#at < MIN_SPACE) {
      this.#out = Buffer.allocUnsafeSlow(SIZE);
      this.#at = 0;
    }
    this.#from = this.#at;
    return taken;
  }

  #key(verb: string, key: string): void {
    this.#text(verb);
    this.#out[this.#at++] = SPACE;
    this.#at = this.#keys.write(this.#out, this.#at, key);
  }

  #text(text: string): void {
    const out = this.#out;
    for (let at = 0; at < text.length; at++) out[this.#at++] = text.charCodeAt(at);
  }

  #lineEnd(): void {
    this.#out[this.#at++] = CR;
    this.#out[this.#at++] = LF;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#out.length) return;
    const present = this.#at - this.#from;
    const grown = Buffer.allocUnsafeSlow(Math.max(present + bytes, present * 2, SIZE));
    this.#out.copy(grown, 0, this.#from, this.#at);
    this.#out = grown;
    this.#from = 0;
    this.#at = present;
  }
}
