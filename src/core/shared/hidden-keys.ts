// Keys and tags of records as the store sees them, where they are hidden from it.
import type { PushChannel } from "../backend.ts";
import type { Entry, Lease } from "../record.ts";

/** Replaces names by others that only holders of the secret can read; equal names by equal ones. */
export interface NameCipher {
  hide(name: string): string;
  /** Undefined: it was not hidden with this secret. */
  reveal(hidden: string): string | undefined;
}

/** A path of namespaces, then an entry's key or the name of a tag: see `Spelling`. */
const NAMED = /^([^:!]*(?::|!t:))(.*)$/s;
/** Hidden names that are remembered, and the characters of all of them. */
const MOST_NAMES = 10_000;
const MOST_CHARACTERS = 2_000_000;

/** The keys and tags of records as the store sees them; without a cipher they are as they are. */
export class HiddenKeys {
  readonly #names: NameCipher | undefined;
  readonly #hidden = new Map<string, string>();
  readonly #revealed = new Map<string, string>();
  #characters = 0;

  constructor(names: NameCipher | undefined) {
    this.#names = names;
  }

  hide(key: string): string {
    if (this.#names === undefined) return key;
    const known = this.#hidden.get(key);
    if (known !== undefined) return known;
    const [, path, name] = NAMED.exec(key) ?? [];
    return path === undefined || name === undefined ? key : this.#know(key, path + this.#hideName(name));
  }

  #hideName(name: string): string {
    return (this.#names as NameCipher).hide(name);
  }

  #know(name: string, hidden: string): string {
    this.#characters += name.length;
    if (this.#hidden.size >= MOST_NAMES || this.#characters > MOST_CHARACTERS) {
      this.#hidden.clear();
      this.#revealed.clear();
      this.#characters = name.length;
    }
    this.#hidden.set(name, hidden);
    this.#revealed.set(hidden, name);
    return hidden;
  }

  /** The part of a prefix that the store can see. */
  path(prefix: string): string {
    return this.#names === undefined ? prefix : (NAMED.exec(prefix)?.[1] ?? prefix);
  }

  /** Undefined: the key was not hidden with this secret. */
  reveal(hidden: string): string | undefined {
    const names = this.#names;
    if (names === undefined) return hidden;
    const known = this.#revealed.get(hidden);
    if (known !== undefined) return known;
    const [, path, part] = NAMED.exec(hidden) ?? [];
    if (path === undefined || part === undefined) return hidden;
    const name = names.reveal(part);
    if (name === undefined) return undefined;
    this.#know(path + name, hidden);
    return path + name;
  }

  hidden<R extends Entry | Lease>(record: R): R {
    if (this.#names === undefined) return record;
    const tags = record.tags.map(({ tag, id }) => ({ tag: this.#tag(tag), id }));
    return { ...record, key: this.hide(record.key), tags };
  }

  revealed<R extends Entry | Lease>(record: R): R | undefined {
    const names = this.#names;
    if (names === undefined) return record;
    const key = this.reveal(record.key);
    if (key === undefined) return undefined;
    const tags = record.tags.map(({ tag, id }) => ({ tag: this.#revealedTag(names, tag), id }));
    const behind = record.kind === "lease" && record.behind ? this.revealed(record.behind) : undefined;
    return { ...record, key, tags, ...(behind && { behind }) };
  }

  /** Remembered apart from keys by a mark that no key begins with: a path comes first there. */
  #tag(tag: string): string {
    return this.#hidden.get(`:${tag}`) ?? this.#know(`:${tag}`, this.#hideName(tag));
  }

  #revealedTag(names: NameCipher, hidden: string): string {
    const known = this.#revealed.get(hidden);
    if (known !== undefined) return known.slice(1);
    const tag = names.reveal(hidden);
    if (tag === undefined) return hidden;
    this.#know(`:${tag}`, hidden);
    return tag;
  }

  pushChannel(push: PushChannel): PushChannel {
    if (this.#names === undefined) return push;
    const { isTrusted } = push;
    return {
      epoch: (key) => push.epoch(this.hide(key)),
      ...(isTrusted && { isTrusted: (now?: number) => isTrusted.call(push, now) }),
      onChange: (listener) =>
        push.onChange((key) => {
          const name = key === undefined ? undefined : this.reveal(key);
          if (key === undefined || name !== undefined) listener(name);
        }),
    };
  }
}
