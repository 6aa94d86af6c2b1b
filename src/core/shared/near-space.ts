// Which in-process tier a namespace has: kept coherent by the store's pushes, or compared with the store at every hit.
import { ComparedNear } from "../near/compared-near.ts";
import { type Near, NearSpace, tellsOfChanges } from "../near/pushed-near.ts";
import type { SpaceStore } from "./namespace-host.ts";

/** None where no tier is wanted, or the store neither tells of changes nor answers at once. */
export function nearSpace({ near, backend, clock, stamps }: SpaceStore): Near | undefined {
  const { push, versionNow } = backend;
  if (near === undefined) return undefined;
  if (tellsOfChanges(push))
    return new NearSpace({ page: near.page(), push, backend, clock, checks: stamps.checks });
  return versionNow && new ComparedNear({ page: near.page(), backend, versionNow, clock });
}
