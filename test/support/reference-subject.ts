// The reference backend as a subject of the contract suite, on a clock that the cases move.
import type { Backend } from "../../src/core/backend.ts";
import { type ContractSubject, ManualClock } from "../../src/testing/index.ts";
import { type ReferenceOptions, ReferenceStore } from "./reference-backend.ts";

export interface ReferenceSubjectOptions extends ReferenceOptions {
  /** What the suite is given instead of a plain client. */
  client?(store: ReferenceStore): Backend;
}

export function referenceSubject(name: string, options: ReferenceSubjectOptions = {}): ContractSubject {
  const { push = "none", scan = true } = options;
  return {
    name,
    offers: {
      shared: true,
      scan,
      push: push !== "none",
      pushBoundMs: typeof push === "number" ? push + 10 : 10,
    },
    open: async () => {
      const clock = new ManualClock();
      const store = new ReferenceStore(clock, options);
      const client = (): Backend => options.client?.(store) ?? store.client();
      return {
        backend: client(),
        second: async () => client(),
        clock,
        advance: (ms) => clock.advance(ms),
        close: async () => {},
      };
    },
  };
}
