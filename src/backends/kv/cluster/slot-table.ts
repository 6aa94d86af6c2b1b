// Maps each slot to its master and gives it a new epoch whenever the master or its connection changes.
import { SLOTS } from "./slots.ts";

/** Unique in the process, so that nothing cached under an earlier table is trusted under a later one. */
let epochs = 0;

export class SlotTable<Owner> {
  readonly #owners = new Array<Owner | undefined>(SLOTS).fill(undefined);
  /** The epoch of each slot, and the connection it was issued for; 0: a new epoch is needed. */
  readonly #epochs = new Int32Array(SLOTS);
  readonly #connections = new Int32Array(SLOTS);

  owner(slot: number): Owner | undefined {
    return this.#owners[slot];
  }

  /** Returns whether pushes about the slot were relied on. */
  assign(slot: number, owner: Owner | undefined): boolean {
    if (this.#owners[slot] === owner) return false;
    this.#owners[slot] = owner;
    return this.revoke(slot);
  }

  /** Values read from the slot so far can no longer be trusted. Returns whether pushes about it were relied on. */
  revoke(slot: number): boolean {
    const wasReliedOn = this.#connections[slot] !== 0;
    this.#connections[slot] = 0;
    return wasReliedOn;
  }

  /** Identifies the connection and the period for which its server has owned the slot. */
  epoch(slot: number, connection: number): number {
    if (connection === 0) return 0;
    if (this.#connections[slot] !== connection) {
      this.#connections[slot] = connection;
      this.#epochs[slot] = ++epochs;
    }
    return this.#epochs[slot] as number;
  }

  /** The lowest slot of the matching owner. */
  firstOf(isOwner: (owner: Owner) => boolean): number | undefined {
    const slot = this.#owners.findIndex((owner) => owner !== undefined && isOwner(owner));
    return slot < 0 ? undefined : slot;
  }

  lastOf(isOwner: (owner: Owner) => boolean): number | undefined {
    const slot = this.#owners.findLastIndex((owner) => owner !== undefined && isOwner(owner));
    return slot < 0 ? undefined : slot;
  }

  /** In the order of their lowest slots. */
  owners(): Set<Owner> {
    const owners = new Set<Owner>();
    for (const owner of this.#owners) if (owner !== undefined) owners.add(owner);
    return owners;
  }
}
