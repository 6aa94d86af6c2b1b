// The namespace of a cache object after disconnect(): every operation rejects with DISCONNECTED.
import { ChangeLog } from "./change-log.ts";
import { ConnectionError } from "./errors.ts";
import type { Namespace } from "./namespace.ts";

export function disconnectedError(): ConnectionError {
  return new ConnectionError("the cache is disconnected", { code: "DISCONNECTED" });
}

function refuse(): never {
  throw disconnectedError();
}

export const disconnectedNamespace: Namespace = {
  changes: new ChangeLog(),
  counters: { now: () => 0, add: refuse, read: refuse },
  records: { now: () => 0, update: refuse, read: refuse },
  peek: () => undefined,
  own: (value) => value,
  get: (_key, callback) => callback.failed(disconnectedError()),
  getMany: refuse,
  set: refuse,
  setMany: refuse,
  delete: refuse,
  inspect: refuse,
  examine: refuse,
  preview: refuse,
  sight: refuse,
  scan: refuse,
  invalidateTags: refuse,
  invalidateMatching: refuse,
  clear: refuse,
  usage: refuse,
  find: refuse,
  admit: refuse,
  child: () => disconnectedNamespace,
};
