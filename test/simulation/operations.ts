// The operations of a schedule, how they are drawn, and what each of them invalidates.
import type { Source } from "./history.ts";

export type Outcome = "value" | "error" | "skip" | "undefined" | "hang";

export type Operation =
  | { readonly do: "get"; readonly key: string; readonly namespace: string }
  | {
      readonly do: "getOrSet";
      readonly key: string;
      readonly namespace: string;
      readonly tags: readonly string[];
      /** Tags that the load names itself. */
      readonly lateTags: readonly string[];
      readonly outcome: Outcome;
      readonly ttl?: number;
      readonly staleIfError?: number;
      readonly staleWhileRevalidate?: number;
      readonly softTimeout?: number;
      readonly hardTimeout?: number;
    }
  | {
      readonly do: "set";
      readonly key: string;
      readonly namespace: string;
      readonly tags: readonly string[];
      readonly ttl?: number;
    }
  | { readonly do: "delete"; readonly key: string; readonly namespace: string }
  | { readonly do: "invalidateTags"; readonly tags: readonly string[]; readonly namespace: string }
  | { readonly do: "invalidatePattern"; readonly pattern: string; readonly namespace: string }
  | { readonly do: "clear"; readonly namespace: string }
  | { readonly do: "disconnect" };

export type Change = Exclude<Operation, { readonly do: "get" | "getOrSet" | "disconnect" }>;

export function isChange(operation: Operation): operation is Change {
  return operation.do !== "get" && operation.do !== "getOrSet" && operation.do !== "disconnect";
}

/** Whether a change concerns a value. */
export function concerns(change: Change, source: Pick<Source, "key" | "namespace" | "tags">): boolean {
  if (change.do === "clear") return source.namespace.startsWith(change.namespace);
  if (change.namespace !== source.namespace) return false;
  switch (change.do) {
    case "set":
    case "delete":
      return change.key === source.key;
    case "invalidateTags":
      return change.tags.some((tag) => source.tags.includes(tag));
    case "invalidatePattern":
      return change.pattern === "*" || change.pattern === source.key;
  }
}

export interface OperationSettings {
  readonly keys: readonly string[];
  /** "" is the root. */
  readonly namespaces: readonly string[];
  /** Whether loads may name tags themselves. */
  readonly lateTags: boolean;
  readonly stale: boolean;
  readonly timeouts: boolean;
  readonly hangs: boolean;
  /** Most loads store nothing. */
  readonly fails?: boolean;
  readonly disconnects: boolean;
  /** The share of operations that change something. */
  readonly changes: number;
  /** Only operations of these kinds, each as often as the others. */
  readonly kinds?: readonly Operation["do"][];
}

const LATE_TAG = "late";

/** Every value carries the tag of its key and one that all have in common. */
export const tagsOf = (key: string): readonly string[] => ["all", `of ${key}`];

type Lot = () => number;

export function drawOperation(settings: OperationSettings, random: Lot): Operation {
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const namespace = one(settings.namespaces);
  const key = one(settings.keys);
  const kind = settings.kinds === undefined ? drawKind(settings, random) : one(settings.kinds);
  switch (kind) {
    case "get":
    case "delete":
      return { do: kind, key, namespace };
    case "getOrSet":
      return drawLoad(settings, key, namespace, random);
    case "set": {
      const ttl = settings.stale && random() < 0.3 ? { ttl: 0.4 } : {};
      return { do: kind, key, namespace, tags: random() < 0.5 ? tagsOf(key) : [], ...ttl };
    }
    case "invalidateTags": {
      const tags = settings.lateTags && random() < 0.5 ? [LATE_TAG] : [one(tagsOf(key))];
      return { do: kind, tags, namespace };
    }
    case "invalidatePattern":
      return { do: kind, pattern: random() < 0.5 ? key : "*", namespace };
    case "clear":
      return { do: kind, namespace: random() < 0.5 ? "" : namespace };
    case "disconnect":
      return { do: kind };
  }
}

function drawKind(settings: OperationSettings, random: Lot): Operation["do"] {
  if (settings.disconnects && random() < 0.07) return "disconnect";
  if (random() >= settings.changes) return random() < 0.35 ? "get" : "getOrSet";
  const lot = random();
  if (lot < 0.3) return "set";
  if (lot < 0.55) return "delete";
  if (lot < 0.85) return "invalidateTags";
  return lot < 0.92 ? "invalidatePattern" : "clear";
}

function drawLoad(settings: OperationSettings, key: string, namespace: string, random: Lot): Operation {
  const lot = settings.fails ? 0.5 + random() / 2 : random();
  const outcome: Outcome =
    lot < 0.76
      ? "value"
      : lot < 0.86
        ? "error"
        : lot < 0.92
          ? "skip"
          : lot < 0.96 || !settings.hangs
            ? "undefined"
            : "hang";
  const isStale = settings.stale && random() < 0.6;
  return {
    do: "getOrSet",
    key,
    namespace,
    tags: random() < 0.7 ? tagsOf(key) : [],
    lateTags: settings.lateTags && random() < 0.5 ? [LATE_TAG] : [],
    outcome,
    ...(isStale ? { ttl: 0.4 } : {}),
    ...(isStale && random() < 0.7 ? { staleIfError: 60 } : {}),
    ...(isStale && random() < 0.4 ? { staleWhileRevalidate: 60 } : {}),
    ...(settings.timeouts && random() < 0.4 ? { hardTimeout: 0.7 } : {}),
    ...(settings.timeouts && isStale && random() < 0.4 ? { softTimeout: 0.2 } : {}),
  };
}

/** For a timeline. */
export function describeOperation(operation: Operation): string {
  const { do: name, ...rest } = operation;
  const facts = Object.entries(rest).filter(
    ([, value]) => value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
  return `${name}(${facts.map(([field, value]) => `${field}: ${JSON.stringify(value)}`).join(", ")})`;
}
