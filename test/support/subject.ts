// A store that any number of clients share, as a subject of the contract suite.
import { describe, it } from "vitest";
import type { CacheConfig } from "../../src/config/types.ts";
import type { Backend } from "../../src/core/backend.ts";
import type { ContractSubject } from "../../src/testing/index.ts";
import { XCache } from "../../src/xcache.ts";

export interface SharedSubject {
  readonly name: string;
  readonly offers: Omit<ContractSubject["offers"], "shared">;
  /** Called for each client, once the servers run. */
  client(): Backend;
  /** What its caches have besides what a case asks for. */
  readonly config?: CacheConfig;
}

export function sharedSubject({ name, offers, client, config = {} }: SharedSubject): ContractSubject {
  return {
    name,
    offers: { ...offers, shared: true },
    open: async () => ({
      backend: client(),
      second: async () => client(),
      cache: (backend, asked) => new XCache({ ...asked, ...config, backend }),
      close: async () => {},
    }),
  };
}

/** Runs all cases of the suite in parallel, for a store whose lifetimes are whole seconds: most cases wait for them. */
export const SIDE_BY_SIDE = { describe: describe.concurrent, it: it.concurrent };
