// What the program says when it ends; scripts rely on these numbers.
export const EXIT = {
  ok: 0,
  /** It failed, the store is unhealthy, or what was asked for is not there. */
  failed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  unreachable: 3,
  /** The store, or what is installed, cannot do this. */
  unsupported: 4,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
