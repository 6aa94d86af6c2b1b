// The feature sets and the packages each of them needs; npm has no extras, so they are optional peers.

const MONITORING = ["@prometheus-io/client", "@opentelemetry/api", "nodemailer"];

/** Names in package.json's peerDependencies. An empty list: nothing but xcache itself. */
export const EXTRAS = {
  full: [...MONITORING, "lmdb", "usearch"],
  vector: ["usearch"],
  monitoring: MONITORING,
  memcached: [],
  fuzzy: [],
  web: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ExtraName = keyof typeof EXTRAS;

export const EXTRA_NAMES = Object.keys(EXTRAS) as readonly ExtraName[];
