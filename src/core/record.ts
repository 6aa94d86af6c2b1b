// What one key of a store holds: an entry, a lease or a stamp. Times are in the store's own milliseconds.

/** 64 random bits as a string of 8 one-byte characters. Never a counter: two processes must not agree by accident. */
export type Token = string;

/** An encoded value. `format` says how: see codec/. */
export interface Payload {
  readonly format: number;
  readonly bytes: Uint8Array;
}

/** A tag with the stamp it had when the load began. */
export interface TagStamp {
  readonly tag: string;
  readonly id: Token;
}

/** The stamps that an entry or lease carries. It is live while each of them equals the current stamp. */
export interface StampSet {
  /** Stamps of the namespace and its ancestors, root first. */
  readonly namespaceStamps: readonly Token[];
  readonly tags: readonly TagStamp[];
}

/** A stored value. */
export interface Entry extends StampSet {
  readonly kind: "entry";
  readonly version: Token;
  /** The store's key in full; a store that shortens keys keeps it and compares. */
  readonly key: string;
  readonly created: number;
  /** When it stops being fresh; Infinity for never. */
  readonly expires: number;
  /** Until when the stale value may still be used by getOrSet; at least `expires`. */
  readonly staleUntil: number;
  readonly payload: Payload;
}

/** A load in progress. Storing its result requires the lease still to be there. */
export interface Lease extends StampSet {
  readonly kind: "lease";
  readonly version: Token;
  readonly key: string;
  /** When a holder that has not extended it is considered dead. */
  readonly expires: number;
  /** The expired value that the load replaces, kept as a stale value. */
  readonly behind?: Entry;
}

/** The current stamp of a tag, a tag group or a namespace. */
export interface Stamp {
  readonly kind: "stamp";
  readonly version: Token;
  /** When the store drops it; Infinity for never. */
  readonly expires: number;
}

/** One of the three. `version` identifies exactly this record and is what `swap` compares. */
export type StoreRecord = Entry | Lease | Stamp;

/** The id of a stamp record; undefined for anything else. */
export const stampId = (record: StoreRecord | undefined): Token | undefined =>
  record?.kind === "stamp" ? record.version : undefined;
