// The shape of a contract case: a sentence that names a rule, and what must hold for it.
import type { Stage } from "./stage.ts";
import type { ContractOffers } from "./subject.ts";

export interface ContractCase {
  readonly rule: string;
  readonly run: (stage: Stage) => Promise<void>;
}

/** Cases about one thing; which ones there are follows from what the subject offers. */
export interface ContractGroup {
  readonly name: string;
  cases(offers: ContractOffers): readonly ContractCase[];
}

export function rule(sentence: string, run: (stage: Stage) => Promise<void>): ContractCase {
  return { rule: sentence, run };
}

/** A promise with its ends in hand, for loads that finish when the case says so. */
export interface Gate<T> {
  readonly promise: Promise<T>;
  open(value: T): void;
  fail(error: Error): void;
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  // A gate that nobody has come to yet may fail already.
  promise.catch(() => {});
  return { promise, open, fail };
}
