// Backends with one realistic defect each, and the contract case that must detect it.
import type { KeyedRecord, ScanItem, ScanOptions, SwapResult, Usage } from "../../src/core/backend.ts";
import { encodeRecord } from "../../src/core/frame/frame.ts";
import type { Entry, StoreRecord, Token } from "../../src/core/record.ts";
import { ReferenceBackend } from "./reference-backend.ts";

type Next = Omit<KeyedRecord, "key"> | undefined;
type Records = readonly (StoreRecord | undefined)[];

export interface Mistake {
  readonly caughtBy: string;
  readonly Broken: typeof ReferenceBackend;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A backend that changes records on their way in. */
function altering(alter: (item: KeyedRecord) => KeyedRecord): typeof ReferenceBackend {
  return class extends ReferenceBackend {
    override write(item: KeyedRecord): Promise<void> {
      return super.write(alter(item));
    }
  };
}

/** A backend that changes payloads on their way in. */
function damaging(damage: (bytes: Uint8Array) => Uint8Array): typeof ReferenceBackend {
  return altering((item) => {
    if (item.record.kind !== "entry") return item;
    const payload = { ...item.record.payload, bytes: damage(item.record.payload.bytes) };
    return { ...item, record: { ...item.record, payload } };
  });
}

/** A backend that uses other lifetimes than requested. */
function lasting(lifetimeOf: (lifetimeMs: number) => number): typeof ReferenceBackend {
  return altering((item) => ({ ...item, lifetimeMs: lifetimeOf(item.lifetimeMs) }));
}

/** A backend that spells keys in a way that is not its own inverse. */
function respelling(spell: (key: string) => string): typeof ReferenceBackend {
  return class extends ReferenceBackend {
    override read(key: string): Promise<StoreRecord | undefined> {
      return super.read(spell(key));
    }
    override write(item: KeyedRecord): Promise<void> {
      return super.write({ ...item, key: spell(item.key) });
    }
    override take(key: string): Promise<StoreRecord | undefined> {
      return super.take(spell(key));
    }
  };
}

/** A backend whose scans are changed on their way out. */
function listing(
  list: (batches: AsyncIterable<readonly ScanItem[]>, prefix: string) => AsyncIterable<readonly ScanItem[]>,
): typeof ReferenceBackend {
  return class extends ReferenceBackend {
    override scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
      return list(super.scan(prefix, options), prefix);
    }
  };
}

class GappySwap extends ReferenceBackend {
  override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
    const current = await this.read(key);
    if (current?.version !== expected) return { won: false, current };
    await turn();
    if (next === undefined) await this.take(key);
    else await this.write({ key, ...next });
    return { won: true };
  }
}

export const swapMistakes: Readonly<Record<string, Mistake>> = {
  "swap ignores what it expects": {
    caughtBy: "a swap from absent is refused if a record exists, and returns that record",
    Broken: class extends ReferenceBackend {
      override async swap(key: string, _expected: Token | undefined, next: Next): Promise<SwapResult> {
        if (next === undefined) await this.take(key);
        else await this.write({ key, ...next });
        return { won: true };
      }
    },
  },
  "swap compares, then writes, with a gap between": {
    caughtBy: "of 100 concurrent swaps from absent exactly one wins, and the others see its record",
    Broken: GappySwap,
  },
  "swap compares, then writes over what came between": {
    caughtBy: "concurrent swaps from any client lose no update",
    Broken: GappySwap,
  },
  "swap compares part of the version": {
    caughtBy: "a swap from another version is refused and returns the current record",
    Broken: class extends ReferenceBackend {
      override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
        const current = this.present(key);
        const alike = expected !== undefined && current?.version.slice(0, 7) === expected.slice(0, 7);
        return super.swap(key, alike ? current?.version : expected, next);
      }
    },
  },
  "a refused swap does not say what is there": {
    caughtBy: "a swap from another version is refused and returns the current record",
    Broken: class extends ReferenceBackend {
      override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
        const result = await super.swap(key, expected, next);
        return result.won ? result : { won: false, current: undefined };
      }
    },
  },
  "a refused swap leaves the payload out": {
    caughtBy: "a swap from absent is refused if a record exists, and returns that record",
    Broken: class extends ReferenceBackend {
      override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
        const result = await super.swap(key, expected, next);
        if (result.won || result.current?.kind !== "entry") return result;
        const payload = { format: 0, bytes: new Uint8Array() };
        return { won: false, current: { ...result.current, payload } };
      }
    },
  },
  "a swap to nothing does nothing": {
    caughtBy: "a swap to absent removes only the record with that version",
    Broken: class extends ReferenceBackend {
      override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
        return next === undefined ? { won: true } : super.swap(key, expected, next);
      }
    },
  },
  "a swap keeps the old lifetime": {
    caughtBy: "a write or swap replaces the lifetime, with a longer or a shorter one",
    Broken: class extends ReferenceBackend {
      override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
        const before = this.store.get(key);
        const result = await super.swap(key, expected, next);
        if (result.won && before !== undefined && next !== undefined) {
          this.store.put(key, { frame: encodeRecord(next.record), expires: before.expires });
        }
        return result;
      }
    },
  },
};

export const recordMistakes: Readonly<Record<string, Mistake>> = {
  "readMany answers in the order of the store": {
    caughtBy: "readMany returns records in the order of its keys, including absent and repeated ones",
    Broken: class extends ReferenceBackend {
      override async readMany(keys: readonly string[]): Promise<Records> {
        return super.readMany([...keys].sort());
      }
    },
  },
  "readMany leaves out what is absent": {
    caughtBy: "readMany returns records in the order of its keys, including absent and repeated ones",
    Broken: class extends ReferenceBackend {
      override async readMany(keys: readonly string[]): Promise<Records> {
        return (await super.readMany(keys)).filter((record) => record !== undefined);
      }
    },
  },
  "take does not remove": {
    caughtBy: "take removes a record and returns it",
    Broken: class extends ReferenceBackend {
      override async take(key: string): Promise<StoreRecord | undefined> {
        return this.read(key);
      }
    },
  },
  "take reads, then removes, with a gap between": {
    caughtBy: "of many concurrent takes exactly one gets the record",
    Broken: class extends ReferenceBackend {
      override async take(key: string): Promise<StoreRecord | undefined> {
        const record = await this.read(key);
        await turn();
        await super.take(key);
        return record;
      }
    },
  },
  "takeMany answers in another order": {
    caughtBy: "takeMany removes its keys and returns the records in their order",
    Broken: class extends ReferenceBackend {
      override async takeMany(keys: readonly string[]): Promise<Records> {
        return (await super.takeMany(keys)).toReversed();
      }
    },
  },
  "removeMany leaves what it was given": {
    caughtBy: "removeMany, if implemented, removes its keys and no others",
    Broken: class extends ReferenceBackend {
      async removeMany(): Promise<void> {}
    },
  },
  "removeMany empties the store": {
    caughtBy: "removeMany, if implemented, removes its keys and no others",
    Broken: class extends ReferenceBackend {
      async removeMany(): Promise<void> {
        await super.takeMany(this.store.keys());
      }
    },
  },
  "a write is acknowledged before it is made": {
    caughtBy: "one client immediately reads what another wrote",
    Broken: class extends ReferenceBackend {
      override async write(item: KeyedRecord): Promise<void> {
        turn()
          .then(() => super.write(item))
          .catch(() => {});
      }
    },
  },
  "a client keeps what it read": {
    caughtBy: "one client immediately reads what another wrote",
    Broken: class extends ReferenceBackend {
      readonly #memory = new Map<string, StoreRecord | undefined>();
      override async read(key: string): Promise<StoreRecord | undefined> {
        if (!this.#memory.has(key)) this.#memory.set(key, await super.read(key));
        return this.#memory.get(key);
      }
    },
  },
  "what is behind a lease is lost": {
    caughtBy: "a lease reads back exactly, with and without an entry behind it",
    Broken: altering((item) => {
      if (item.record.kind !== "lease") return item;
      const { behind: _, ...lease } = item.record;
      return { ...item, record: lease };
    }),
  },
  "tags are cut at a NUL": {
    caughtBy: "an entry reads back exactly as it was written",
    Broken: altering((item) => {
      if (item.record.kind !== "entry") return item;
      const tags = item.record.tags.map(({ tag, id }) => ({ tag: tag.split("\0")[0] ?? "", id }));
      return { ...item, record: { ...item.record, tags } };
    }),
  },
  "versions pass through UTF-8": {
    caughtBy: "versions of any eight bytes are stored and distinguished",
    Broken: altering((item) => {
      const version = Buffer.from(item.record.version, "latin1").toString("utf8").slice(0, 8);
      const fits = [...version].every((character) => character.charCodeAt(0) <= 0xff);
      return { ...item, record: { ...item.record, version: fits ? version : "????????" } };
    }),
  },
  "never is not a time": {
    caughtBy: "a stamp reads back exactly, whether it expires or not",
    Broken: altering((item) => ({
      ...item,
      record: {
        ...item.record,
        expires: Number.isFinite(item.record.expires) ? item.record.expires : 0,
      } as StoreRecord,
    })),
  },
};

export const lifetimeMistakes: Readonly<Record<string, Mistake>> = {
  "lifetimes are ignored": {
    caughtBy: "a record is gone once its lifetime has passed",
    Broken: lasting(() => Number.POSITIVE_INFINITY),
  },
  "long lifetimes overflow a timer": {
    caughtBy: "a record is present throughout its lifetime, however long that is",
    Broken: lasting((ms) => (ms > 2 ** 31 - 1 ? 1 : ms)),
  },
  "a lifetime of nothing is taken for for ever": {
    caughtBy: "a lifetime below the store's resolution still ends",
    Broken: lasting((ms) => Math.floor(ms) || Number.POSITIVE_INFINITY),
  },
  "reading lengthens a lifetime": {
    caughtBy: "reads, touches and refused swaps do not extend a lifetime",
    Broken: class extends ReferenceBackend {
      override async read(key: string): Promise<StoreRecord | undefined> {
        const record = await super.read(key);
        if (record !== undefined) await this.write({ key, record, lifetimeMs: 1_000 });
        return record;
      }
    },
  },
};

export const binaryMistakes: Readonly<Record<string, Mistake>> = {
  "a space is an underscore": {
    caughtBy: "keys of any characters are distinct and come back unchanged",
    Broken: respelling((key) => key.replaceAll(" ", "_")),
  },
  "keys are compared without case": {
    caughtBy: "taking one awkward key leaves all others",
    Broken: respelling((key) => key.toLowerCase()),
  },
  "keys are normalized": {
    caughtBy: "keys of any characters are distinct and come back unchanged",
    Broken: respelling((key) => key.normalize("NFC")),
  },
  "long keys are cut": {
    caughtBy: "keys of 64 KiB work and are distinguished by every character",
    Broken: respelling((key) => key.slice(0, 250)),
  },
  "payloads pass through UTF-8": {
    caughtBy: "payloads of every byte value come back exactly",
    Broken: damaging((bytes) => Buffer.from(Buffer.from(bytes).toString("utf8"))),
  },
  "payloads end at a line break": {
    caughtBy: "payloads of every byte value come back exactly",
    Broken: damaging((bytes) => (bytes.indexOf(10) < 0 ? bytes : bytes.subarray(0, bytes.indexOf(10)))),
  },
  "large payloads are cut": {
    caughtBy: "a payload of 1 MiB, or of the store's limit, comes back exactly",
    Broken: damaging((bytes) => bytes.subarray(0, 1_000_000)),
  },
  "the whole buffer behind a view is stored": {
    caughtBy: "a view into a larger buffer is stored without the rest of the buffer",
    Broken: damaging((bytes) => new Uint8Array(bytes.buffer)),
  },
  "an empty payload is no record": {
    caughtBy: "an empty payload is a payload",
    Broken: class extends ReferenceBackend {
      override async read(key: string): Promise<StoreRecord | undefined> {
        const record = await super.read(key);
        return (record as Entry | undefined)?.payload?.bytes.length === 0 ? undefined : record;
      }
    },
  },
};

export const scanMistakes: Readonly<Record<string, Mistake>> = {
  "a scan misses keys": {
    caughtBy: "a scan sees every record that is present throughout, despite concurrent changes",
    Broken: listing(async function* (batches) {
      for await (const batch of batches) yield batch.slice(0, -1);
    }),
  },
  "a scan goes by position while records come and go": {
    caughtBy: "a scan sees every record that is present throughout, despite concurrent changes",
    Broken: class extends ReferenceBackend {
      override async *scan(prefix: string): AsyncIterable<readonly ScanItem[]> {
        for (let at = 0; ; at += 50) {
          const keys = this.store
            .keys()
            .filter((key) => key.startsWith(prefix))
            .slice(at, at + 50);
          if (keys.length === 0) return;
          yield keys.flatMap((key) => {
            const record = this.present(key);
            return record === undefined ? [] : [{ key, record, bytes: 0 }];
          });
        }
      }
    },
  },
  "a scan takes its prefix for a pattern": {
    caughtBy: "a prefix is matched literally, including glob characters",
    Broken: class extends ReferenceBackend {
      override async *scan(prefix: string): AsyncIterable<readonly ScanItem[]> {
        const pattern = new RegExp(
          `^${prefix
            .replaceAll("*", ".*")
            .replaceAll("?", ".")
            .replace(/[[\]\\^{}]/g, "\\$&")}`,
        );
        for await (const batch of super.scan("")) yield batch.filter(({ key }) => pattern.test(key));
      }
    },
  },
  "a scan ignores its prefix": {
    caughtBy: "a prefix matches longer names but not siblings",
    Broken: class extends ReferenceBackend {
      override scan(_prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
        return super.scan("", options);
      }
    },
  },
  "a scan lists entries only": {
    caughtBy: "a scan finds every record under its prefix, of any kind, with its size",
    Broken: listing(async function* (batches) {
      for await (const batch of batches) yield batch.filter(({ record }) => record.kind === "entry");
    }),
  },
  "a scan goes on after it was aborted": {
    caughtBy: "an aborted scan returns no further batch",
    Broken: class extends ReferenceBackend {
      override scan(prefix: string): AsyncIterable<readonly ScanItem[]> {
        return super.scan(prefix);
      }
    },
  },
  "a store is fuller than full": {
    caughtBy: "pool, memoryUsage and describe report valid values",
    Broken: class extends ReferenceBackend {
      async memoryUsage(): Promise<number> {
        return 1.01;
      }
    },
  },
  "usage counts every prefix": {
    caughtBy: "usage covers only the records under its prefix",
    Broken: class extends ReferenceBackend {
      override usage(): Promise<Usage> {
        return super.usage("");
      }
    },
  },
};

export const cacheMistakes: Readonly<Record<string, Mistake>> = {
  "a write leaves a lease alone": {
    caughtBy: "set during a load: its value is returned but not stored",
    Broken: class extends ReferenceBackend {
      override async write(item: KeyedRecord): Promise<void> {
        if (this.present(item.key)?.kind !== "lease") await super.write(item);
      }
    },
  },
  "a removed stamp comes back": {
    caughtBy: "invalidateTags removes every entry that carries one of the tags, and no other",
    Broken: class extends ReferenceBackend {
      override async takeMany(keys: readonly string[]): Promise<Records> {
        return super.readMany(keys);
      }
    },
  },
  "each client has a store of its own for leases": {
    caughtBy: "callers in two processes share one load",
    Broken: class extends ReferenceBackend {
      readonly #leases = new Map<string, KeyedRecord>();
      override async swap(key: string, expected: Token | undefined, next: Next): Promise<SwapResult> {
        if (next?.record.kind === "lease" && expected === undefined && !this.#leases.has(key)) {
          this.#leases.set(key, { key, ...next });
          return { won: true };
        }
        return super.swap(
          key,
          this.#leases.get(key)?.record.version === expected ? undefined : expected,
          next,
        );
      }
    },
  },
};
