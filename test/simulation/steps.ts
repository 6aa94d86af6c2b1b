// The decisions of a schedule. A step that is not possible when its turn comes is skipped, so any part of a schedule is one.
import type { Operation } from "./operations.ts";

export interface ConnectionFault {
  readonly process: number;
  /** Only one of its connections, counted from the oldest. Default: all. */
  readonly connection?: number;
}

export type Step =
  /** `callers` calls at the same time. */
  | { readonly do: "call"; readonly process: number; readonly operation: Operation; readonly callers: number }
  /** A process's attempt to connect reaches the store. */
  | { readonly do: "connect"; readonly process: number }
  /** The store executes commands of one of a process's connections, counted among those with commands on their way. */
  | { readonly do: "serve"; readonly process: number; readonly rank: number; readonly count: number }
  /** Replies and pushes reach a process. */
  | { readonly do: "deliver"; readonly process: number; readonly rank: number; readonly count: number }
  /** A load that is running ends, counted from the oldest. */
  | { readonly do: "load"; readonly rank: number }
  /** The next timer fires. */
  | { readonly do: "tick" }
  | { readonly do: "wait"; readonly ms: number }
  /** What a process's connections carry is held back, or no longer. */
  | ({ readonly do: "hold" | "release" } & ConnectionFault)
  /** A process's connections are cut; `arrives`: what was sent on them still reaches the store, later. */
  | ({ readonly do: "reset"; readonly arrives: boolean } & ConnectionFault)
  | { readonly do: "freeze" | "thaw" | "kill"; readonly process: number }
  | { readonly do: "evict"; readonly rank: number }
  /** The store's clock jumps. */
  | { readonly do: "step clock"; readonly ms: number }
  | { readonly do: "save" | "restart" | "down" | "up" }
  /** The replica catches up by so many writes. */
  | { readonly do: "replicate"; readonly count: number }
  /** The replica takes over with what it has; the former master still answers those who are connected to it. */
  | { readonly do: "promote" }
  /** The replica takes over, unless it has already; the former master follows it. */
  | { readonly do: "failover" }
  /** Likewise, but connections to the former master stay: it answers from its new master's data. */
  | { readonly do: "demote" };

/** Everything there is. */
export const ALL = 1_000;

const ORDINARY: ReadonlySet<Step["do"]> = new Set([
  "call",
  "connect",
  "serve",
  "deliver",
  "load",
  "tick",
  "wait",
  "save",
  "replicate",
]);

export const isFault = ({ do: what }: Step): boolean => !ORDINARY.has(what);

export function describeStep(step: Step, describe: (operation: Operation) => string): string {
  switch (step.do) {
    case "call":
      return `p${step.process} ${describe(step.operation)}${step.callers > 1 ? ` by ${step.callers} callers` : ""}`;
    case "serve":
      return `the store executes ${amount(step.count)} of p${step.process}${step.rank > 0 ? ` (connection ${step.rank})` : ""}`;
    case "deliver":
      return `p${step.process} receives ${amount(step.count)}${step.rank > 0 ? ` (connection ${step.rank})` : ""}`;
    case "connect":
      return `p${step.process} reaches the store`;
    case "load":
      return `load ${step.rank} of those running ends`;
    case "tick":
      return "the next timer fires";
    case "wait":
      return `${step.ms} ms pass`;
    case "reset":
      return `p${step.process} loses ${connections(step)}${step.arrives ? "; what it sent is still on its way" : ""}`;
    case "hold":
    case "release":
      return `p${step.process}: ${step.do} ${connections(step)}`;
    case "evict":
      return `record ${step.rank} is evicted`;
    case "step clock":
      return `the store's clock jumps by ${step.ms} ms`;
    case "replicate":
      return `the replica applies ${amount(step.count)}`;
    case "save":
    case "restart":
    case "down":
    case "up":
    case "promote":
    case "failover":
    case "demote":
      return `store: ${step.do}`;
    default:
      return `p${step.process}: ${step.do}`;
  }
}

const connections = ({ connection }: ConnectionFault): string =>
  connection === undefined ? "its connections" : `connection ${connection} of those open`;

const amount = (count: number): string => (count >= ALL ? "everything" : String(count));
