// The options of a feed.
import { describe, expect, test } from "vitest";
import { postgresFeed } from "../../../src/db/feed.ts";
import { XCache } from "../../../src/xcache.ts";

describe("postgresFeed", () => {
  const cache = new XCache({ kvUrl: "memory://" });
  const valid = { connection: "postgres://user:secret@localhost/db", cache, tables: "users" };

  test.each([
    [{ ...valid, connection: "" }, "connection must be a connection string"],
    [{ ...valid, cache: {} }, "cache must be an XCache"],
    [{ ...valid, tables: [] }, "tables must be a table's name"],
    [{ ...valid, tables: "*" }, "tables must be a table's name"],
    [{ ...valid, publication: "" }, "publication must be a name"],
    [{ ...valid, slot: { durable: "No Good" } }, 'slot must be "temporary" or { durable: name }'],
    [{ ...valid, silentFor: 0 }, "silentFor"],
    [{ ...valid, rows: 1 }, "rows must be true or false"],
    [{ ...valid, metrics: {} }, "metrics must be a CacheMetrics"],
    [{ ...valid, slots: "temporary" }, 'unknown option "slots"'],
  ])("refuses %j", (options, message) => {
    expect(() => postgresFeed(options as never)).toThrow(message);
  });
});
