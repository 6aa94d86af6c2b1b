// Which server holds each slot, and a number for every time that changes.
import { SLOTS } from "./slots.ts";

/** Never the same twice in a process, so that nothing kept under an earlier table is trusted under a later one. */
let epochs = 0;

export class SlotTable<Owner> {
  readonly #owners = new Array<Owner | undefined>(SLOTS).fill(undefined);
  /** The number of a slot, and the connection it was given for; 0: it needs a new one. */
  readonly #epochs = new Int32Array(SLOTS);
  readonly #connections = new Int32Array(SLOTS);

  owner(slot: number): Owner | undefined {
    return this.#owners[slot];
  }

  /** The slots are given away one by one; returns whether somebody relied on pushes about this one. */
  give(slot: number, owner: Owner | undefined): boolean {
    if (this.#owners[slot] === owner) return false;
    this.#owners[slot] = owner;
    return this.unsettle(slot);
  }

  /** What was read of the slot until now cannot be trusted; returns whether anybody did. */
  unsettle(slot: number): boolean {
    const wasReliedOn = this.#connections[slot] !== 0;
    this.#connections[slot] = 0;
    return wasReliedOn;
  }

  /** Identifies the connection and the time for which its server has held the slot. */
  epoch(slot: number, connection: number): number {
    if (connection === 0) return 0;
    if (this.#connections[slot] !== connection) {
      this.#connections[slot] = connection;
      this.#epochs[slot] = ++epochs;
    }
    return this.#epochs[slot] as number;
  }

  /** The lowest slot of a server. */
  firstOf(isOwner: (owner: Owner) => boolean): number | undefined {
    const slot = this.#owners.findIndex((owner) => owner !== undefined && isOwner(owner));
    return slot < 0 ? undefined : slot;
  }

  /** In the order of their lowest slots. */
  owners(): Set<Owner> {
    const owners = new Set<Owner>();
    for (const owner of this.#owners) if (owner !== undefined) owners.add(owner);
    return owners;
  }
}
