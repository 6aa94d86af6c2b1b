// The contract suite on a store whose replies are delayed and reordered, as on a network.
import { describe, it } from "vitest";
import { backendContract, ChaosBackend } from "../../../src/testing/index.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";
import { RunningClock } from "../../support/running-clock.ts";

for (const seed of [1, 2, 3]) {
  let client = 0;
  backendContract(
    {
      name: `reference with delays of up to 4 ms (seed ${seed})`,
      offers: { shared: true, scan: true, push: true },
      open: async () => {
        const clock = new RunningClock();
        const store = new ReferenceStore(clock, { push: 3 });
        const connect = (): ChaosBackend =>
          new ChaosBackend(store.client(), { clock, seed: seed * 1_000 + client++ }).random({ delayMs: 4 });
        clock.start();
        return {
          backend: connect(),
          second: async () => connect(),
          clock,
          advance: (ms) => clock.passed(ms),
          close: async () => clock.stop(),
        };
      },
    },
    { describe, it },
  );
}
