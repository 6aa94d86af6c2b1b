import { expect, test } from "vitest";
import { DeliveryFailure, type Destination, LazyDestination } from "../../src/alerts/destination.ts";
import type { Outgoing } from "../../src/alerts/notification.ts";

const MESSAGE = {} as Outgoing;

test("code that could not be loaded is a failure to be retried, and is loaded by the next attempt", async () => {
  const sent: Outgoing[] = [];
  let loads = 0;
  const destination = new LazyDestination("a webhook", async (): Promise<Destination> => {
    if (++loads === 1) throw new Error("no such file");
    return { label: "a webhook", send: async (outgoing) => void sent.push(outgoing) };
  });
  const { signal } = new AbortController();
  const failure = await destination.send(MESSAGE, signal).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(DeliveryFailure);
  expect(failure).toMatchObject({ retryable: true, cause: new Error("no such file") });
  await destination.send(MESSAGE, signal);
  await destination.send(MESSAGE, signal);
  expect(sent).toEqual([MESSAGE, MESSAGE]);
  expect(loads).toBe(2);
});

test("an attempt that is given up while the code is loaded sends nothing", async () => {
  const attempt = new AbortController();
  const destination = new LazyDestination("a webhook", async (): Promise<Destination> => {
    attempt.abort(new Error("too late"));
    return { label: "a webhook", send: () => Promise.reject(new Error("it was sent")) };
  });
  await expect(destination.send(MESSAGE, attempt.signal)).rejects.toThrow("too late");
});
