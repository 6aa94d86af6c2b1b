// Which function owns which name in a cache: two functions under one name would return each other's results.
import { ConfigError } from "../core/errors.ts";

/** A wrapped function, or a wrapped method in one class (in a subclass it may return something else). */
export interface NameOwner {
  readonly fn: object;
  readonly class?: object;
}

// Held strongly: whether a name is free must not depend on when garbage is collected.
const owners = new WeakMap<object, Map<string, NameOwner>>();

/** Claims `name` for `owner`; idempotent. Throws ConfigError NAME_TAKEN. */
export function claimName(cache: object, name: string, owner: NameOwner): void {
  let names = owners.get(cache);
  if (names === undefined) {
    names = new Map();
    owners.set(cache, names);
  }
  const holder = names.get(name);
  if (holder === undefined) {
    names.set(name, owner);
  } else if (holder.fn !== owner.fn || holder.class !== owner.class) {
    throw new ConfigError(
      "NAME_TAKEN",
      `Another function is already cached as ${JSON.stringify(name)} in this cache; expected one function per name, else one would return the other's results.`,
      { hint: "Pass a distinct `name` to one of them, and wrap a function once rather than on every call." },
    );
  }
}

/** Throws ConfigError NAME_REQUIRED for an empty name. */
export function requireName(name: string, what: string): string {
  if (name !== "") return name;
  throw new ConfigError("NAME_REQUIRED", `${what} has no name to build cache keys from.`);
}
