// Names that only holders of a secret can read: keys and tags in the store.
import type { KeyObject } from "node:crypto";
import { nodeCrypto } from "../core/lazy-builtin.ts";
import type { NameCipher } from "../core/shared/hidden-keys.ts";

const NAME_CIPHER = "aes-256-ctr";
const VECTOR_LENGTH = 16;

/** A key for one purpose. */
export function derived(secret: Buffer, salt: Buffer): KeyObject {
  const crypto = nodeCrypto();
  return crypto.createSecretKey(crypto.createHmac("sha256", secret).update(salt).digest());
}

/**
 * Names are encrypted with an initialisation vector made of the name itself, so that equal names stay equal and a hidden name
 * proves that it was made with this secret.
 */
export class HiddenNames implements NameCipher {
  readonly #secret: () => Buffer;
  #from: Buffer | undefined;
  #macKey: KeyObject | undefined;
  #cipherKey: KeyObject | undefined;

  constructor(secret: () => Buffer) {
    this.#secret = secret;
  }

  hide(name: string): string {
    this.#derive();
    const crypto = nodeCrypto();
    const bytes = bytesOf(name);
    const vector = this.#vectorOf(bytes);
    const cipher = crypto.createCipheriv(NAME_CIPHER, this.#cipherKey as KeyObject, vector);
    return Buffer.concat([vector, cipher.update(bytes), cipher.final()]).toString("base64url");
  }

  reveal(hidden: string): string | undefined {
    this.#derive();
    const bytes = Buffer.from(hidden, "base64url");
    if (bytes.length <= VECTOR_LENGTH || bytes.toString("base64url") !== hidden) return undefined;
    const vector = bytes.subarray(0, VECTOR_LENGTH);
    const decipher = nodeCrypto().createDecipheriv(NAME_CIPHER, this.#cipherKey as KeyObject, vector);
    const name = Buffer.concat([decipher.update(bytes.subarray(VECTOR_LENGTH)), decipher.final()]);
    return this.#vectorOf(name).equals(vector) ? nameOf(name) : undefined;
  }

  #vectorOf(name: Buffer): Buffer {
    return nodeCrypto()
      .createHmac("sha256", this.#macKey as KeyObject)
      .update(name)
      .digest()
      .subarray(0, VECTOR_LENGTH);
  }

  #derive(): void {
    const secret = this.#secret();
    if (secret === this.#from) return;
    this.#from = secret;
    this.#macKey = derived(secret, Buffer.from("names: vector"));
    this.#cipherKey = derived(secret, Buffer.from("names: cipher"));
  }
}

/** The first byte says how it is encoded: a lone surrogate cannot be written in UTF-8. */
function bytesOf(name: string): Buffer {
  const utf8 = Buffer.from(`\0${name}`);
  return utf8.toString("utf8", 1) === name
    ? utf8
    : Buffer.concat([Buffer.of(1), Buffer.from(name, "utf16le")]);
}

const nameOf = (bytes: Buffer): string => bytes.toString(bytes[0] === 0 ? "utf8" : "utf16le", 1);
