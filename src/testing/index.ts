// xcache/testing: the backend contract suite, a fault-injecting backend, and a manually advanced clock.

export { backendContract } from "./backend-contract.ts";
export { ChaosBackend, type ChaosOptions } from "./chaos-backend.ts";
export type { ChaosChances, ChaosOperation, ChaosTarget } from "./chaos-script.ts";
export type { ContractOffers, ContractRunner, ContractSubject, OpenSubject } from "./contract/subject.ts";
export { cacheWithClock, ManualClock, settle } from "./manual-clock.ts";
