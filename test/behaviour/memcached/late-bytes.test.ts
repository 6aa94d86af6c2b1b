// memcached cannot be asked to end a lost connection: pending invalidations are delivered twice after its loss.
import { expect, it } from "vitest";
import { OperationTimeoutError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { startMemcached } from "../../support/memcached.ts";
import { timed } from "../../support/opened.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

it("a set whose bytes are delayed is executed late, and undone within another operation_timeout", async () => {
  await using server = await startMemcached();
  await using relay = await Relay.start(server.port);
  const circuitBreaker = { failureThreshold: 1_000, resetTimeout: 0.1 };
  // The address is part of every key, so all use the relay.
  const kvUrl = `memcached://127.0.0.1:${relay.port}`;
  await using mine = new XCache({ kvUrl, operationTimeout: 0.5, circuitBreaker });
  await mine.set("k", "old");
  // A set reads the namespace stamp first.
  relay.holdRequests("ms ");
  expect((await timed(mine.set("k", "late"))).outcome).toBeInstanceOf(OperationTimeoutError);
  await until(async () => (await mine.get("k")) === undefined, { what: "mine is back" });
  await using other = new XCache({ kvUrl });
  await other.set("k", "newer");
  relay.releaseRequests(1);
  await until(async () => (await other.get("k")) === "late", { what: "the bytes arrive" });
  await until(async () => (await other.get("k")) === undefined, {
    what: "it is undone, without a call",
    timeoutMs: 2_000,
  });
});
