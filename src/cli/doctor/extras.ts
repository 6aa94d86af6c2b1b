// Feature sets and the optional peer packages each needs.
const MONITORING = ["@prometheus-io/client", "@opentelemetry/api", "nodemailer"];

/** Package names from peerDependencies; npm has no extras. An empty list: xcache itself is enough. */
export const EXTRAS = {
  full: [...MONITORING, "lmdb", "usearch"],
  vector: ["usearch"],
  monitoring: MONITORING,
  memcached: [],
  fuzzy: [],
  web: [],
  disk: ["lmdb"],
  prisma: ["@prisma/client", "@prisma/adapter-pg"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ExtraName = keyof typeof EXTRAS;

export const EXTRA_NAMES = Object.keys(EXTRAS) as readonly ExtraName[];
