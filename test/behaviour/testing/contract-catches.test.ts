// The contract suite must fail on broken backends: each mistake is caught by the case for it.
import { describe, expect, it } from "vitest";
import {
  backendContract,
  ChaosBackend,
  type ContractOffers,
  type ContractRunner,
  type ContractSubject,
} from "../../../src/testing/index.ts";
import {
  binaryMistakes,
  cacheMistakes,
  lifetimeMistakes,
  type Mistake,
  recordMistakes,
  scanMistakes,
  swapMistakes,
} from "../../support/broken-backend.ts";
import { ReferenceBackend } from "../../support/reference-backend.ts";
import { type ReferenceSubjectOptions, referenceSubject } from "../../support/reference-subject.ts";

/** Runs the cases whose rule starts with `wanted`; the error of each, or undefined if it passed. */
async function outcomes(subject: ContractSubject, wanted: string): Promise<(Error | undefined)[]> {
  const bodies: (() => Promise<void>)[] = [];
  const collect: ContractRunner = {
    describe: (_name, body) => body(),
    it: (rule, body) => rule.startsWith(wanted) && bodies.push(body),
  };
  backendContract(subject, collect);
  return Promise.all(
    bodies.map((body) =>
      body().then(
        () => undefined,
        (error: Error) => error,
      ),
    ),
  );
}

/** Fails unless a correct backend passes the cases and the wrong one fails at least one of them. */
async function expectCaught(
  caughtBy: string,
  wrong: ReferenceSubjectOptions["client"],
  options: ReferenceSubjectOptions = {},
  offers: Partial<ContractOffers> = {},
): Promise<void> {
  const subject = (client: ReferenceSubjectOptions["client"]): ContractSubject => {
    const { offers: usual, ...rest } = referenceSubject("subject", { ...options, ...(client && { client }) });
    return { ...rest, offers: { ...usual, ...offers } };
  };
  const right = await outcomes(subject(undefined), caughtBy);
  expect(right.length).toBeGreaterThan(0);
  expect(right.filter((error) => error !== undefined)).toEqual([]);
  expect((await outcomes(subject(wrong), caughtBy)).some((error) => error !== undefined)).toBe(true);
}

const all: Readonly<Record<string, Readonly<Record<string, Mistake>>>> = {
  swaps: swapMistakes,
  records: recordMistakes,
  lifetimes: lifetimeMistakes,
  "keys and bytes": binaryMistakes,
  scans: scanMistakes,
  caches: cacheMistakes,
};

describe.each(Object.entries(all))("mistakes in %s are noticed", (_group, mistakes) => {
  it.each(Object.entries(mistakes))("%s", async (_name, { caughtBy, Broken }) => {
    await expectCaught(caughtBy, (store) => new Broken(store));
  });
});

describe("mistakes in what a backend offers are noticed", () => {
  it("a store that cannot scan finds nothing instead of throwing", async () => {
    class Silent extends ReferenceBackend {
      override async *scan(): AsyncIterable<never> {}
    }
    await expectCaught(
      "a store that cannot list keys throws UnsupportedError",
      (store) => new Silent(store),
      {
        scan: false,
      },
    );
  });

  it("a backend claims a capability it lacks", async () => {
    class Boastful extends ReferenceBackend {
      override readonly capabilities = { shared: true, scan: false, ttlResolutionMs: 1 };
    }
    await expectCaught(
      "the backend has a name and the capabilities that the subject declares",
      (store) => new Boastful(store),
    );
  });

  it("disconnecting twice is an error", async () => {
    class Touchy extends ReferenceBackend {
      #ended = false;
      override async disconnect(): Promise<void> {
        if (this.#ended) throw new Error("already disconnected");
        this.#ended = true;
      }
    }
    await expectCaught(
      "disconnecting twice has the effect of disconnecting once",
      (store) => new Touchy(store),
    );
  });

  it("a payload that is too large hangs the call", async () => {
    const wrong: ReferenceSubjectOptions["client"] = (store) =>
      new (class extends ReferenceBackend {
        override write(item: Parameters<ReferenceBackend["write"]>[0]): Promise<void> {
          const size = item.record.kind === "entry" ? item.record.payload.bytes.length : 0;
          return size > 1_000 ? new Promise(() => {}) : super.write(item);
        }
      })(store);
    const subject = referenceSubject("subject", { client: wrong });
    const limited = { ...subject, offers: { ...subject.offers, maxPayloadBytes: 1_000 } };
    const [error] = await outcomes(limited, "a payload beyond the store's limit is rejected");
    expect(error?.message).toContain("did not settle");
  });
});

describe("mistakes in pushes are noticed", () => {
  it.each(["write", "take", "swap to nothing", "takeMany", "removeMany"])(
    "pushes of a %s are silently lost",
    async (change) => {
      await expectCaught(
        `a change by another client to a value that was read is pushed: ${change}`,
        (store) => {
          const deaf = store.client();
          if (deaf.push !== undefined) Object.assign(deaf.push, { changed: () => {} });
          return deaf;
        },
        { push: "at once" },
      );
    },
  );

  it("pushes arrive later than allowed", async () => {
    await expectCaught(
      "a change by another client to a value that was read is pushed: write",
      (store) => new ChaosBackend(store.client()).delayPushes(5_000),
      { push: "at once" },
      { pushBoundMs: 200 },
    );
  });

  it("a channel is trusted after it closed, and has the same epoch after it reopened", async () => {
    await expectCaught(
      "a disconnected channel is not trusted, and a reconnected one has a new epoch",
      (store) => {
        const same = store.client();
        if (same.push !== undefined) Object.assign(same.push, { epoch: () => 1 });
        return same;
      },
      { push: "at once" },
    );
  });

  it("a listener cannot unsubscribe", async () => {
    await expectCaught(
      "a listener that unsubscribed is not called again",
      (store) => {
        const sticky = store.client();
        const listen = sticky.push?.onChange.bind(sticky.push);
        if (sticky.push !== undefined) {
          Object.assign(sticky.push, {
            onChange: (listener: (key?: string) => void) => {
              listen?.(listener);
              return () => {};
            },
          });
        }
        return sticky;
      },
      { push: "at once" },
    );
  });
});
