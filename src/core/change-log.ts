// Changes made while loads are in flight, so that an overtaken load is neither stored nor joined.
import { FewKeys } from "./few-keys.ts";

/** One counter for all namespaces of a store, so that a parent's change can be compared with a child's load. */
export interface Sequence {
  value: number;
}

/** Beyond this many names the log drops them and treats everything as changed. */
const LONGEST_LOG = 100_000;
const MOST_PATTERNS = 100;

/** The latest change of a key that is being loaded. */
interface LoadedKey {
  loads: number;
  at: number;
}

/** The log of one namespace. Keys are tracked while they are being loaded, tags and patterns while any load runs. */
export class ChangeLog {
  readonly #sequence: Sequence;
  readonly #parent: ChangeLog | undefined;
  readonly #keys = new FewKeys<LoadedKey>();
  readonly #tags = new Map<string, number>();
  readonly #patterns: { readonly matches: (key: string) => boolean; readonly at: number }[] = [];
  #everythingAt = 0;
  #loads = 0;

  constructor(parent?: ChangeLog) {
    this.#parent = parent;
    this.#sequence = parent === undefined ? { value: 0 } : parent.#sequence;
  }

  /** Increases with every change and mark. */
  get now(): number {
    return this.#sequence.value;
  }

  /** Whether any load is in flight; otherwise a write path may skip the calls below. */
  get watched(): boolean {
    return this.#loads > 0;
  }

  /** A load begins; returns the moment to compare with. Call `end` when it has finished. */
  begin(key: string): number {
    this.#loads++;
    const loaded = this.#keys.get(key);
    if (loaded === undefined) this.#keys.set(key, { loads: 1, at: 0 });
    else loaded.loads++;
    return this.#sequence.value;
  }

  /** A unique moment: everything else began either before or after it. */
  mark(): number {
    return ++this.#sequence.value;
  }

  end(key: string): void {
    this.#loads--;
    const loaded = this.#keys.get(key);
    if (loaded !== undefined && --loaded.loads === 0) this.#keys.delete(key);
    if (this.#loads === 0) this.#forget();
  }

  key(key: string): void {
    const at = ++this.#sequence.value;
    const loaded = this.#keys.get(key);
    if (loaded !== undefined) loaded.at = at;
  }

  tag(tag: string): void {
    const at = ++this.#sequence.value;
    if (this.#loads === 0) return;
    this.#tags.set(tag, at);
    if (this.#tags.size > LONGEST_LOG) this.#overflow();
  }

  /** A change made elsewhere has overtaken the load of `key` that began at `since`; later loads are not affected. */
  overtake(key: string, since: number): void {
    this.#sequence.value = Math.max(this.#sequence.value, since + 1);
    const loaded = this.#keys.get(key);
    if (loaded !== undefined) loaded.at = Math.max(loaded.at, since + 1);
  }

  /** Every key that `matches`, including keys whose first load is still in flight. */
  pattern(matches: (key: string) => boolean): void {
    const at = ++this.#sequence.value;
    if (this.#loads > 0) this.#patterns.push({ matches, at });
    if (this.#patterns.length > MOST_PATTERNS) this.#overflow();
  }

  /** The whole namespace and its descendants. */
  everything(): void {
    this.#everythingAt = ++this.#sequence.value;
  }

  /** Whether the key, one of the tags or the whole namespace changed after `since`. */
  touched(key: string, tags: readonly string[], since: number): boolean {
    return (
      (this.#keys.get(key)?.at ?? 0) > since ||
      this.tagsTouched(tags, since) ||
      this.#patterns.some((pattern) => pattern.at > since && pattern.matches(key))
    );
  }

  tagsTouched(tags: readonly string[], since: number): boolean {
    return this.#everythingSince(since) || tags.some((tag) => (this.#tags.get(tag) ?? 0) > since);
  }

  #everythingSince(since: number): boolean {
    if (this.#everythingAt > since) return true;
    const parent = this.#parent;
    return parent === undefined ? false : parent.#everythingSince(since);
  }

  #overflow(): void {
    this.#forget();
    this.everything();
  }

  /** Called after nearly every load: clearing an empty Map would allocate a new table for it. */
  #forget(): void {
    if (this.#tags.size > 0) this.#tags.clear();
    if (this.#patterns.length > 0) this.#patterns.length = 0;
  }
}
