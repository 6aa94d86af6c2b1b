// A store of several servers, one of which cannot be reached when a namespace is opened.
import { expect, test } from "vitest";
import type { BackendHost, MetServer } from "../../src/core/backend.ts";
import { BackendError, ConnectionError } from "../../src/core/errors.ts";
import type { StoreRecord } from "../../src/core/record.ts";
import type { SharedStore } from "../../src/core/shared-store.ts";
import type { Space } from "../../src/core/space.ts";
import { ManualClock } from "../../src/testing/index.ts";
import { ReferenceBackend, ReferenceStore } from "../support/reference-backend.ts";
import { openSharedStore } from "../support/shared-store.ts";

const ANCHOR = "{far}";

/** Two servers: what ends with the anchor is on the far one. */
class TwoServers extends ReferenceBackend {
  host: BackendHost | undefined;
  farFails: Error | undefined;

  open(host: BackendHost): void {
    this.host = host;
  }

  override async read(key: string): Promise<StoreRecord | undefined> {
    if (this.farFails !== undefined && key.endsWith(ANCHOR)) throw this.farFails;
    return super.read(key);
  }

  far(): MetServer {
    return {
      anchor: ANCHOR,
      runId: "run",
      startedAt: this.now() - 60_000,
      lastProvenAt: 0,
      records: this,
      owns: (key) => key.endsWith(ANCHOR),
    };
  }
}

async function openStore(): Promise<{ backend: TwoServers; store: SharedStore }> {
  const clock = new ManualClock();
  const backend = new TwoServers(new ReferenceStore(clock));
  const store = openSharedStore(backend, clock);
  await backend.host?.met(backend.far());
  return { backend, store };
}

const use = async (space: Space): Promise<void> => {
  await space.set("k", 1, { ttlMs: 60_000, staleMs: 0, tags: [] });
};

test("a namespace can be used while a server that was met before is out of reach", async () => {
  const { backend, store } = await openStore();
  await use(store.space("first"));
  backend.farFails = new ConnectionError("gone");
  await expect(use(store.space("second"))).resolves.toBeUndefined();
});

test("a namespace is not used while a server that is there does not let itself be compared with", async () => {
  const { backend, store } = await openStore();
  backend.farFails = new BackendError("STORE_FAILED", "no");
  await expect(use(store.space("first"))).rejects.toThrow("no");
  backend.farFails = undefined;
  await expect(use(store.space("first"))).resolves.toBeUndefined();
});
