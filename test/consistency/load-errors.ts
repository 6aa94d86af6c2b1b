// Guarantee 4: a load's error reaches every waiter in its process unwrapped, and no waiter runs the load again.
import type { Evidence, Violation } from "./evidence.ts";
import type { Call, LoadRun } from "./history.ts";

export function loadErrors(evidence: Evidence): Violation[] {
  const loads = evidence.history.calls.filter(({ operation }) => operation === "getOrSet");
  return [
    ...loads.flatMap((call) => strangeError(evidence, call)),
    ...evidence.history.loads
      .filter(({ outcome }) => outcome === "error")
      .flatMap((load) => loads.flatMap((call) => runAgain(evidence, load, call))),
  ];
}

/** A call that failed with another error than the one thrown by the load it waited for. */
function strangeError({ sources }: Evidence, call: Call): Violation[] {
  const { failure } = call;
  if (failure === undefined || failure.load === undefined) return [];
  const load = sources.get(failure.load)?.load;
  const isItsOwn =
    load !== undefined &&
    load.outcome === "error" &&
    load.worker === call.worker &&
    call.keys?.includes(load.key) &&
    load.end >= call.start &&
    load.start <= call.end;
  if (isItsOwn && failure.same === true) return [];
  return [violation(call, `failed with ${JSON.stringify(failure)}, not with the error of its load`)];
}

/** A call that waited for a load that failed, and for which another load ran afterwards. */
function runAgain(evidence: Evidence, failed: LoadRun, call: Call): Violation[] {
  if (!isWaiter(failed, call) || evidence.whyVoid(failed, call.start) !== undefined) return [];
  const again = evidence.history.loads.find((load) => load.call === call.id && load.start >= failed.end);
  const source = evidence.sources.get(call.values?.[0]?.id ?? "")?.load;
  const later = again ?? (source !== undefined && source.start >= failed.end ? source : undefined);
  return later === undefined
    ? []
    : [violation(call, `waited for the load ${failed.id}, which failed, and ${later.id} was run for it`)];
}

const isWaiter = (load: LoadRun, call: Call): boolean =>
  call.worker === load.worker &&
  call.keys?.includes(load.key) === true &&
  (call.id === load.call || (call.start > load.start && call.start < load.end)) &&
  call.end >= load.end;

function violation(call: Call, what: string): Violation {
  const message = `getOrSet ${call.id} in process ${call.worker} ${what}`;
  return { guarantee: 4, message, key: call.keys?.[0], from: call.start - 100, to: call.end + 100 };
}
