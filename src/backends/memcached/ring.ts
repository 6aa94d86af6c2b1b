// Which server a key is on: consistent hashing over the configured list, whether its servers are up or not.
//
// The ring has 2^32 points. Every server takes 256 of them: 32 SHA-256 digests of `name#round`, cut into 32-bit numbers. A
// key belongs to the first server at or after its own point. The list is sorted first, so its order does not matter. Any
// change to this must change FORMAT: a key must never be looked up in another place than the one it was written to.
import { type HostPort, nameOf } from "../../core/address/address.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";

const FORMAT = "xcache ring 1";
const ROUNDS = 32;
const NUMBERS_PER_ROUND = 8;

export class Ring {
  /** Names of the servers, sorted; the ring refers to them by their index here. */
  readonly names: readonly string[];
  /** Differs between sets of servers: 6 bytes. */
  readonly fingerprint: Buffer;
  readonly #points: Uint32Array;
  readonly #owners: Uint16Array;

  constructor(hosts: readonly HostPort[]) {
    this.names = hosts.map(nameOf).sort();
    this.fingerprint = digest([FORMAT, ...this.names].join("\n")).subarray(0, 6);
    // All keys are on an only server.
    const sharing = this.names.length === 1 ? [] : this.names;
    const owned = sharing
      .flatMap((name, owner) => pointsOf(name).map((point) => ({ point, owner })))
      .sort((a, b) => a.point - b.point || a.owner - b.owner);
    this.#points = Uint32Array.from(owned, ({ point }) => point);
    this.#owners = Uint16Array.from(owned, ({ owner }) => owner);
  }

  /** The index in `names` of the server that a key is on. */
  ownerOf(key: string): number {
    if (this.names.length === 1) return 0;
    const points = this.#points;
    const point = pointOf(key);
    let low = 0;
    let high = points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((points[middle] as number) < point) low = middle + 1;
      else high = middle;
    }
    return this.#owners[low === points.length ? 0 : low] as number;
  }
}

const digest = (text: string): Buffer => nodeCrypto().createHash("sha256").update(text).digest();

function pointsOf(name: string): readonly number[] {
  return Array.from({ length: ROUNDS }, (_, round) => digest(`${name}#${round}`)).flatMap((bytes) =>
    Array.from({ length: NUMBERS_PER_ROUND }, (_, at) => bytes.readUInt32BE(at * 4)),
  );
}

/** FNV-1a over UTF-16 units, then the finalizer of MurmurHash3, so that similar keys do not end up side by side. */
function pointOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

const ANCHOR_MARK = "!x:server@";

/** The suffix that puts a key on the server of this name; see `anchor` in core/backend.ts. */
export const anchorFor = (name: string): string => `@${name}`;

/**
 * The server that a key is a note about; undefined for any other key. Such a note lies on that server whatever the ring
 * says, and is the same for every list of servers.
 */
export function anchoredTo(key: string): string | undefined {
  const mark = key.indexOf(ANCHOR_MARK);
  // After a colon it is part of a user's key; see `spelling` in core/keys.ts.
  if (mark < 0 || key.indexOf(":") < mark) return undefined;
  return key.slice(mark + ANCHOR_MARK.length);
}
