// Requests without a client on their way through an application of a framework, which have to find their middleware again.
import type { IncomingMessage } from "node:http";
import type { Arrival } from "./node-exchange.ts";

const expected = new WeakMap<object, { readonly engine: unknown; readonly arrival: Arrival }>();

/** Before a copy is sent on its way: whom to tell when it comes to the middleware of this engine. */
export function expectArrival(copy: IncomingMessage, engine: unknown, arrival: Arrival): void {
  expected.set(copy, { engine, arrival });
}

/** Whom to tell when this is a copy that has arrived; undefined: it is a client's request, or another middleware's. */
export function arrivalOf(message: object, engine: unknown): Arrival | undefined {
  const found = expected.get(message);
  if (found === undefined || found.engine !== engine) return undefined;
  expected.delete(message);
  return found.arrival;
}
