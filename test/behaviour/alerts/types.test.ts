// Types of alerts: checked by `npm run typecheck`, which compiles this file.
import { describe, expectTypeOf, it } from "vitest";
import type { AlertComparison } from "../../../src/alerts/condition.ts";
import type { AlertDefinition, AlertRule } from "../../../src/alerts/definition.ts";
import type { AlertDeliveries, AlertManager } from "../../../src/alerts/manager.ts";
import type { AlertMetric } from "../../../src/alerts/metric.ts";
import type { AlertNotification, AlertPayload } from "../../../src/alerts/notification.ts";
import type { AlertPattern } from "../../../src/alerts/patterns.ts";
import type { MetricsSource } from "../../../src/alerts/snapshot.ts";
import type { ComprehensiveMetrics } from "../../../src/core/stats.ts";
import type { SnakeCase } from "../../../src/core/wire.ts";
import type { XCache } from "../../../src/xcache.ts";

declare const manager: AlertManager;

/** Compiled, never run. */
const compiled = (_check: () => unknown): void => {};

const TERMS = { name: "low", metric: "hit_rate", threshold: 0.7, comparison: "less_than" } as const;

describe("an alert", () => {
  it("needs at least one destination", () => {
    compiled(() => manager.addAlert({ ...TERMS, webhookUrl: "https://example.com" }));
    compiled(() => manager.addAlert({ ...TERMS, emailRecipients: ["ops@example.com"] }));
    compiled(() =>
      manager.addAlert({ ...TERMS, webhookUrl: ["https://example.com"], emailRecipients: "a@example.com" }),
    );
    // @ts-expect-error no destination
    compiled(() => manager.addAlert(TERMS));
  });

  it("accepts only known metrics and comparisons, by their wire names", () => {
    const webhookUrl = "https://example.com";
    // @ts-expect-error the camelCase name
    compiled(() => manager.addAlert({ ...TERMS, webhookUrl, metric: "hitRate" }));
    // @ts-expect-error no such comparison
    compiled(() => manager.addAlert({ ...TERMS, webhookUrl, comparison: "below" }));
    // @ts-expect-error the snake_case name
    compiled(() => manager.addAlert({ ...TERMS, webhook_url: webhookUrl }));
    expectTypeOf<AlertDefinition>().toExtend<AlertRule>();
  });

  it("can watch every numeric field of the record", () => {
    type Record = Required<ComprehensiveMetrics>;
    type Plain = { [K in keyof Record]: Record[K] extends number | boolean ? K : never }[keyof Record];
    expectTypeOf<AlertMetric>().toEqualTypeOf<SnakeCase<Plain>>();
  });

  it("compares in six ways", () => {
    expectTypeOf<AlertComparison>().toEqualTypeOf<
      "less_than" | "greater_than" | "less_or_equal" | "greater_or_equal" | "equal" | "not_equal"
    >();
  });
});

describe("a manager", () => {
  it("accepts any XCache", () => {
    expectTypeOf<XCache>().toExtend<MetricsSource>();
  });

  it("offers patterns that need only a destination", () => {
    expectTypeOf<AlertPattern & { webhookUrl: string }>().toExtend<AlertDefinition>();
    expectTypeOf<"pool_exhausted">().toExtend<AlertPattern["name"]>();
    compiled(() => expectTypeOf(manager.patterns()).toEqualTypeOf<readonly AlertPattern[]>());
  });

  it("starts synchronously and stops asynchronously", () => {
    compiled(() => expectTypeOf(manager.start()).toEqualTypeOf<void>());
    compiled(() => expectTypeOf(manager.stop({ timeout: 1 })).toEqualTypeOf<Promise<void>>());
    expectTypeOf<AlertManager>().toExtend<AsyncDisposable>();
    expectTypeOf<AlertDeliveries["pending"]>().toEqualTypeOf<number>();
  });
});

describe("a payload", () => {
  it("has the fields of the notification in snake_case", () => {
    expectTypeOf<AlertPayload["data"]["incident_id"]>().toEqualTypeOf<string>();
    expectTypeOf<AlertPayload["data"]["metric"]>().toEqualTypeOf<AlertNotification["data"]["metric"]>();
    expectTypeOf<AlertPayload["type"]>().toEqualTypeOf<"alert.firing" | "alert.resolved">();
    expectTypeOf<AlertPayload["data"]>().not.toHaveProperty("incidentId");
  });
});
