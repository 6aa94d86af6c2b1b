// What a cache knows of its feeds: the check of its health, its metrics in every collector, its alerts and its dashboard.
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { expect, onTestFinished, test } from "vitest";
import { dashboard } from "../../../src/dashboard/index.ts";
import { startSqliteFeed } from "../../../src/db/feed/sqlite-feed.ts";
import { startMysqlFeed } from "../../../src/db/feed/start.ts";
import { CacheMetrics, OtelCollector, PullCollector, PushCollector } from "../../../src/index.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { statsdDaemon } from "../../metrics/statsd-daemon.ts";
import { until } from "../../support/until.ts";
import { sqliteFile } from "../sqlite.ts";

const file = sqliteFile();

function watched(cache: XCache) {
  const database = file.connect();
  const clock = new ManualClock();
  const feed = startSqliteFeed({ database, cache, tables: "users", interval: 1 }, clock);
  file.atEnd(async () => {
    await feed.close();
    database.close();
    await cache.disconnect();
  });
  return { feed, clock };
}

test("a feed is a check of its cache's health until it is closed", async () => {
  const cache = new XCache({ kvUrl: "memory://" });
  const feedChecks = async () =>
    (await cache.detailedHealthCheck()).checks.filter(({ name }) => name === "feed");
  expect(await feedChecks()).toEqual([]);
  expect(cache.getComprehensiveMetrics()).not.toHaveProperty("silentFeeds");
  const { feed } = watched(cache);
  await feed.ready();
  expect(await feedChecks()).toEqual([{ name: "feed", ok: true, detail: "leader" }]);
  expect(cache.namespace("part").getComprehensiveMetrics().silentFeeds).toBe(0);
  await feed.close();
  expect(await feedChecks()).toEqual([]);
  expect(cache.getComprehensiveMetrics()).not.toHaveProperty("silentFeeds");
});

test("a silent feed degrades its cache, and the dashboard of the process shows why", async () => {
  const cache = new XCache({ kvUrl: "memory://" });
  const connection = { host: "127.0.0.1", port: 1, user: "nobody", database: "shop" };
  const feed = startMysqlFeed({ connection, cache: cache.namespace("part"), tables: "users" }, {});
  file.atEnd(() => feed.close().then(() => cache.disconnect()));
  await until(() => feed.status().error !== undefined, { what: "the connection is refused" });
  const { status, checks, performanceMetrics } = await cache.detailedHealthCheck();
  const silent = {
    name: "feed",
    ok: false,
    detail: expect.stringMatching(/^has never been alive: .*ECONNREFUSED/),
  };
  expect(status).toBe("degraded");
  expect(checks).toContainEqual(silent);
  expect(performanceMetrics.silentFeeds).toBe(1);
  const { fetch } = dashboard({ cache, authorize: () => true });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(
    new Request("http://localhost/cache/api/overview", { method: "POST", headers, body: "{}" }),
  );
  expect(await answer.json()).toMatchObject({
    health: { status: "degraded", checks: expect.arrayContaining([silent]) },
  });
});

test("a feed reports to the metrics of its cache, in every collector, under the names of the catalogue", async () => {
  const daemon = await statsdDaemon();
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  const pull = new PullCollector({ namespace: "feeds" });
  const metrics = new CacheMetrics([
    pull,
    new PushCollector({ port: daemon.port }),
    new OtelCollector({ meterProvider }),
  ]);
  onTestFinished(() => metrics.close());
  const cache = new XCache({ kvUrl: "memory://", metrics });
  const { feed, clock } = watched(cache);
  await feed.ready();
  await file.changeBehind("Bob");
  await feed.ready();
  await clock.advance(1_000);
  await metrics.flush();
  const page = await pull.metrics();
  for (const line of [
    "feeds_cache_feed_alive 1",
    "feeds_cache_feed_gaps_total 1",
    "feeds_cache_feed_invalidations_total 1",
    "feeds_cache_feed_leader_changes_total 0",
    "feeds_cache_feed_lag_seconds_count 1",
    "# TYPE feeds_cache_feed_lag_seconds histogram",
  ])
    expect(page.split("\n")).toContain(line);
  await until(() => daemon.lines().some(({ name }) => name === "xcache.feed.alive"), { what: "it is sent" });
  const sent = new Set(daemon.lines().map(({ name, type }) => `${name} ${type}`));
  for (const line of ["feed.alive g", "feed.gaps c", "feed.invalidations c", "feed.lag h"])
    expect(sent).toContain(`xcache.${line}`);
  await meterProvider.forceFlush();
  const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
  const exported = new Map(
    scopes.flatMap((scope) => scope.metrics).map((each) => [each.descriptor.name, each]),
  );
  expect(exported.get("cache.feed.lag")?.descriptor.unit).toBe("s");
  expect(exported.get("cache.feed.gaps.total")?.dataPoints.map(({ value }) => value)).toEqual([1]);
  expect(pull.dropped).toBe(0);
});
