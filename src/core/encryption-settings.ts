// How entries are encrypted, as configured. The secrets are never printed with a configuration.

export type Secret = string | Uint8Array;

/** Secrets by id. */
export type SecretsById = Readonly<Record<string, Secret>>;

/** What a function that hands out keys may return. */
export type HandedOutKeys = SecretsById | { readonly keys: SecretsById; readonly use?: string };

export interface EncryptionConfig {
  /**
   * Secrets of at least 16 bytes by id, or a function that returns them, alone or as `{ keys, use }`. It is called when the
   * cache connects, when an entry names an id that is not known, and about once a minute.
   */
  readonly keys: SecretsById | (() => HandedOutKeys | Promise<HandedOutKeys>);
  /** The id of the key that encrypts; the others only decrypt. Default: the only key there is. */
  readonly use?: string;
  /**
   * Also hides keys and tags from the store: the id of the key that hides them, which must stay the same when keys are
   * rotated. `true`: the first key. Default: false.
   */
  readonly hideKeys?: boolean | string;
}

export class EncryptionSettings {
  readonly #config: EncryptionConfig;

  constructor(config: EncryptionConfig) {
    this.#config = config;
  }

  get config(): EncryptionConfig {
    return this.#config;
  }

  toJSON(): string {
    return "[encryption]";
  }
}
