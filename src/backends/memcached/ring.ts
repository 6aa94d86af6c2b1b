// Which server a key is on: consistent hashing over the configured list, whether its servers are up or not.
//
// The ring is a circle of 2^32 places. Every server stands at 256 of them: 32 SHA-256 digests of `name#round`, cut into
// numbers of 32 bits. A key belongs to the first server at or after its own place. The list is sorted first, so its order
// does not matter. Whoever changes any of this changes FORMAT: a key must never be looked for in another place than the
// one it was written to.
import type { HostPort } from "../../core/address/address.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";

const FORMAT = "xcache ring 1";
const ROUNDS = 32;
const NUMBERS_PER_ROUND = 8;

/** As one would write it; how a server is known to the ring. */
export function nameOf({ host, port }: HostPort): string {
  const name = host.toLowerCase();
  return `${name.includes(":") ? `[${name}]` : name}:${port}`;
}

export class Ring {
  /** Names of the servers, sorted; the ring speaks of them by their position here. */
  readonly names: readonly string[];
  /** Another one for every other set of servers: 6 bytes. */
  readonly fingerprint: Buffer;
  readonly #places: Uint32Array;
  readonly #owners: Uint16Array;

  constructor(hosts: readonly HostPort[]) {
    this.names = hosts.map(nameOf).sort();
    this.fingerprint = digest([FORMAT, ...this.names].join("\n")).subarray(0, 6);
    const points = this.names
      .flatMap((name, owner) => placesOf(name).map((place) => ({ place, owner })))
      .sort((a, b) => a.place - b.place || a.owner - b.owner);
    this.#places = Uint32Array.from(points, ({ place }) => place);
    this.#owners = Uint16Array.from(points, ({ owner }) => owner);
  }

  /** The position in `names` of the server that a key is on. */
  ownerOf(key: string): number {
    if (this.names.length === 1) return 0;
    const places = this.#places;
    const place = placeOf(key);
    let low = 0;
    let high = places.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((places[middle] as number) < place) low = middle + 1;
      else high = middle;
    }
    return this.#owners[low === places.length ? 0 : low] as number;
  }
}

const digest = (text: string): Buffer => nodeCrypto().createHash("sha256").update(text).digest();

function placesOf(name: string): readonly number[] {
  return Array.from({ length: ROUNDS }, (_, round) => digest(`${name}#${round}`)).flatMap((bytes) =>
    Array.from({ length: NUMBERS_PER_ROUND }, (_, at) => bytes.readUInt32BE(at * 4)),
  );
}

/** FNV-1a over UTF-16 units, then the finalizer of MurmurHash3, because neighbouring keys must not be neighbours here. */
function placeOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
