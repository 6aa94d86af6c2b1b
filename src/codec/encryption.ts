// Encryption of entries: AES-256-GCM over the payload; everything else in the entry's frame, its full key included, is authenticated.
//
//   0      format version
//   1      length of the key's id, then the id in UTF-8
//   16     salt of the key that this writer derived from the secret
//   12     nonce
//   rest   format byte and bytes of the payload, encrypted; then the authentication tag (16)
//
// A writer derives a key of its own from the secret and a random salt, so random nonces of very many entries never repeat
// under one key.
import type { CipherGCM, DecipherGCM, KeyObject } from "node:crypto";
import { outsideCallers } from "../core/async-context.ts";
import type { EncryptionConfig } from "../core/encryption-settings.ts";
import { CodecError, ConnectionError, OperationTimeoutError } from "../core/errors.ts";
import { toError } from "../core/events.ts";
import { encodeRecord } from "../core/frame/frame.ts";
import { nodeCrypto } from "../core/lazy-builtin.ts";
import type { Entry, Payload } from "../core/record.ts";
import { redactText } from "../core/redact.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import type { NameCipher } from "../core/shared/hidden-keys.ts";
import type { Seal, SealHost } from "../core/shared/sealed-backend.ts";
import { isPlainRecord } from "../core/wire.ts";
import { invalidSetting, type Keys, keysOf, knownKeys } from "./encryption-keys.ts";
import { derived, HiddenNames } from "./hidden-names.ts";
import { SEALED } from "./payload-format.ts";

const VERSION = 1;
const SALT_LENGTH = 16;
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;
const CIPHER = "aes-256-gcm";
const NO_BYTES = Buffer.alloc(0);
/** With random nonces of 96 bits, far from where two may be equal. */
const MOST_SEALED = 2 ** 30;
/** Derived keys of other writers that are remembered. */
const MOST_DERIVED = 1_000;
/** How soon keys are asked for again after an entry named one that is not known, and how old they may get. */
const UNKNOWN_PAUSE_MS = 1_000;
const OLDEST_KEYS_MS = 60_000;

/** A key derived for one writer. */
interface Writer {
  readonly head: Buffer;
  readonly key: KeyObject;
  sealed: number;
}

export class Encryption implements Seal {
  readonly names: NameCipher | undefined;
  readonly #options: EncryptionConfig;
  #keys: Keys | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  /** The latest refresh has failed, which was reported. */
  #isFailing = false;
  #host: SealHost | undefined;
  #writer: Writer | undefined;
  readonly #derived = new Map<string, KeyObject>();

  /** `keys`: made of the secrets that are known. Throws ConfigError. */
  constructor(options: EncryptionConfig, keys = knownKeys(options)) {
    this.#options = options;
    this.#keys = keys;
    if (options.hideKeys !== undefined && options.hideKeys !== false)
      this.names = new HiddenNames(() => (this.#keys as Keys).names as Buffer);
  }

  get isReady(): boolean {
    return this.#keys !== undefined && this.#host !== undefined;
  }

  /** Keys that are handed out by a function are asked for when the cache connects. */
  async prepare(host: SealHost): Promise<void> {
    this.#host = host;
    if (this.#keys === undefined) await this.#ask(host);
  }

  seal(entry: Entry): Payload {
    this.#askAfter(OLDEST_KEYS_MS);
    const { head, key } = this.#ownWriter();
    const crypto = nodeCrypto();
    const nonce = crypto.randomBytes(NONCE_LENGTH);
    const cipher = crypto.createCipheriv(CIPHER, key, nonce) as CipherGCM;
    cipher.setAAD(headerOf(entry));
    const { format, bytes } = entry.payload;
    const parts = [head, nonce, cipher.update(Buffer.of(format)), cipher.update(bytes), cipher.final()];
    return { format: SEALED, bytes: Buffer.concat([...parts, cipher.getAuthTag()]) };
  }

  open(entry: Entry): Payload {
    const { format, bytes } = entry.payload;
    if (format !== SEALED) throw unreadable(entry, "it is not encrypted");
    const sealed = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const idLength = sealed[1] ?? 0;
    const saltAt = 2 + idLength;
    const start = saltAt + SALT_LENGTH + NONCE_LENGTH;
    if (sealed[0] !== VERSION || sealed.length < start + TAG_LENGTH + 1)
      throw unreadable(entry, "its encryption is of a newer version, or damaged");
    const id = sealed.toString("utf8", 2, saltAt);
    const key = this.#keyOf(id, sealed.subarray(saltAt, saltAt + SALT_LENGTH));
    if (key === undefined) throw unreadable(entry, `the key ${JSON.stringify(id)} is not among the keys`);
    const nonce = sealed.subarray(saltAt + SALT_LENGTH, start);
    const decipher = nodeCrypto().createDecipheriv(CIPHER, key, nonce) as DecipherGCM;
    decipher.setAAD(headerOf(entry));
    decipher.setAuthTag(sealed.subarray(-TAG_LENGTH));
    try {
      const plain = decipher.update(sealed.subarray(start, -TAG_LENGTH));
      decipher.final();
      return { format: plain[0] as number, bytes: plain.subarray(1) };
    } catch {
      throw unreadable(entry, "the key is wrong, or the entry was altered or moved");
    }
  }

  #ownWriter(): Writer {
    const { use, byId } = this.#keys as Keys;
    let writer = this.#writer;
    if (writer === undefined || writer.sealed >= MOST_SEALED) {
      const salt = nodeCrypto().randomBytes(SALT_LENGTH);
      const id = Buffer.from(use);
      const head = Buffer.concat([Buffer.of(VERSION, id.length), id, salt]);
      writer = { head, key: derived(byId.get(use) as Buffer, salt), sealed: 0 };
      this.#writer = writer;
    }
    writer.sealed++;
    return writer;
  }

  #keyOf(id: string, salt: Buffer): KeyObject | undefined {
    const secret = this.#keys?.byId.get(id);
    if (secret === undefined) {
      this.#askAfter(UNKNOWN_PAUSE_MS);
      return undefined;
    }
    const name = `${salt.toString("latin1")}${id}`;
    let key = this.#derived.get(name);
    if (key === undefined) {
      key = derived(secret, salt);
      const oldest = this.#derived.keys().next().value;
      if (this.#derived.size >= MOST_DERIVED && oldest !== undefined) this.#derived.delete(oldest);
      this.#derived.set(name, key);
    }
    return key;
  }

  /** Asks the function that hands out keys again, unless it was asked more recently. A failure leaves the keys as they are. */
  #askAfter(ageMs: number): void {
    const host = this.#host;
    if (typeof this.#options.keys !== "function" || host === undefined) return;
    if (host.clock.coarse() - this.#askedAt < ageMs || this.#asking !== undefined) return;
    this.#ask(host).then(
      () => {
        this.#isFailing = false;
      },
      (error: Error) => {
        if (!this.#isFailing) host.report(error);
        this.#isFailing = true;
      },
    );
  }

  #ask(host: SealHost): Promise<void> {
    this.#askedAt = host.clock.now();
    this.#asking ??= this.#fetch(host).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #fetch({ clock, connectTimeoutMs }: SealHost): Promise<void> {
    const { keys, use } = this.#options;
    if (typeof keys !== "function") return;
    const late = (): never => {
      throw new OperationTimeoutError(
        `encryption.keys returned no keys within connect_timeout (${connectTimeoutMs / 1_000} s)`,
        { hint: FUNCTION },
      );
    };
    const asked = outsideCallers(async () => keys()).catch((cause: unknown) => {
      const words = redactText(toError(cause).message);
      throw new ConnectionError(`no encryption keys: ${words}`, { cause, hint: FUNCTION });
    });
    const given: unknown = await withDeadline(clock, connectTimeoutMs, asked, late);
    const whole = isPlainRecord(given) && isPlainRecord(given.keys) ? given : { keys: given, use };
    this.#replace(whole.keys, whole.use ?? use);
  }

  #replace(given: unknown, use: unknown): void {
    const { hideKeys } = this.#options;
    const present = this.#keys;
    let next: Keys;
    try {
      // The first key may be another one now.
      next = keysOf(given, use, present?.hiding ?? hideKeys);
      // Entries are found by their hidden names: other processes would not see what this one invalidates.
      if (present?.names !== undefined && next.names?.equals(present.names) !== true)
        throw invalidSetting("encryption.hide_keys", "the id of a key that stays the same", hideKeys);
    } catch (error) {
      throw new ConnectionError(`unusable encryption keys: ${toError(error).message}`, { hint: FUNCTION });
    }
    if (present === undefined || next.use !== present.use || !isSame(next, present)) {
      this.#writer = undefined;
      this.#derived.clear();
    }
    this.#keys = next;
  }
}

const FUNCTION = "See what the function given as encryption.keys does; it is called again.";

const isSame = (one: Keys, other: Keys): boolean =>
  one.byId.size === other.byId.size &&
  [...one.byId].every(([id, key]) => other.byId.get(id)?.equals(key) === true);

/** The whole frame of an entry but its payload, with the full key. */
const headerOf = (entry: Entry): Buffer =>
  encodeRecord({ ...entry, payload: { format: SEALED, bytes: NO_BYTES } }, { withKey: true });

const unreadable = ({ key }: Entry, why: string): CodecError =>
  new CodecError("ENTRY_UNREADABLE", `The entry ${JSON.stringify(key)} counts as absent: ${why}.`);
