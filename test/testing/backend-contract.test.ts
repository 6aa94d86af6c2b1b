// The contract suite must pass on correct backends, in any runner.
import { describe, it } from "vitest";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";
import type { Backend } from "../../src/core/backend.ts";
import { backendContract, ChaosBackend, ManualClock } from "../../src/testing/index.ts";
import { referenceSubject } from "../support/reference-subject.ts";

const runner = { describe, it };

backendContract(referenceSubject("reference"), runner);
backendContract(referenceSubject("reference that pushes at once", { push: "at once" }), runner);
backendContract(referenceSubject("reference that pushes 50 ms late", { push: 50 }), runner);
backendContract(referenceSubject("reference that cannot scan", { scan: false }), runner);
backendContract(referenceSubject("reference that counts in seconds", { ttlResolutionMs: 1000 }), runner);
backendContract(
  referenceSubject("reference under a calm ChaosBackend", {
    push: "at once",
    client: (store) => new ChaosBackend(store.client()),
  }),
  runner,
);

const memoryBackends: Readonly<Record<string, () => Backend>> = {
  memory: () => new MemoryBackend(),
  // Wrapped, it is used through its records, as any other store is.
  "memory as a store of records": () => new ChaosBackend(new MemoryBackend()),
};

for (const [name, make] of Object.entries(memoryBackends)) {
  backendContract(
    {
      name,
      offers: { shared: false, scan: true, push: false },
      open: async () => {
        const clock = new ManualClock();
        return { backend: make(), clock, advance: (ms) => clock.advance(ms), close: async () => {} };
      },
    },
    runner,
  );
}
