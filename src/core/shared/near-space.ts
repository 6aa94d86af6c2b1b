// Which in-process tier a namespace has: kept coherent by the store's pushes, or compared with the store at every hit.
import { ComparedNear } from "../near/compared-near.ts";
import { type Near, PushedNear, tellsOfChanges } from "../near/pushed-near.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** None where no tier is wanted, or the store neither tells of changes nor answers at once. */
export function nearNamespace({ near, backend, clock, stamps }: NamespaceHost): Near | undefined {
  const { push, versionNow } = backend;
  if (near === undefined) return undefined;
  if (tellsOfChanges(push))
    return new PushedNear({ page: near.page(), push, backend, clock, checks: stamps.checks });
  return versionNow && new ComparedNear({ page: near.page(), backend, versionNow, clock });
}
