// The namespaces in use of a shared store, found by the spelled keys of their entries: there may be very many.
import type { OpenNamespace } from "./namespace-host.ts";

export class OpenNamespaces {
  readonly #byPrefix = new Map<string, OpenNamespace>();

  add(space: OpenNamespace): void {
    this.#byPrefix.set(space.names.entryPrefix, space);
  }

  /** The namespace whose entry a spelled key is; undefined for the library's own records. */
  ownerOf(spelled: string): OpenNamespace | undefined {
    return this.#byPrefix.get(spelled.slice(0, spelled.indexOf(":") + 1));
  }

  /** The store says that a record has changed; undefined: any may have. */
  pushed(spelled: string | undefined): void {
    if (spelled !== undefined) this.ownerOf(spelled)?.pushed(spelled);
    else for (const space of this.#byPrefix.values()) space.pushed(undefined);
  }
}
