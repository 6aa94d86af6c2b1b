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
