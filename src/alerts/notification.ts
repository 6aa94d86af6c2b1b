// What is told of an alert: one record, as JSON for machines and as text for people.
import type { Clock } from "../core/clock.ts";
import { toWire, type Wire } from "../core/wire.ts";
import { type AlertComparison, wordsOf } from "./comparison.ts";
import type { Condition, Crossing } from "./condition.ts";
import type { CheckedAlert } from "./definition.ts";
import { type AlertMetric, showFigure } from "./metric.ts";

/** What happened to an alert. Times are ISO 8601. */
export interface AlertNotification {
  readonly type: "alert.firing" | "alert.resolved";
  readonly timestamp: string;
  readonly data: {
    readonly name: string;
    readonly status: "firing" | "resolved";
    readonly metric: AlertMetric;
    readonly comparison: AlertComparison;
    readonly threshold: number;
    /** The figure at this moment. */
    readonly value: number;
    /** When the condition was first seen to hold. */
    readonly since: string;
    /** 0 when it begins to fire, then how often that was told again. */
    readonly repeat: number;
    /** The same from the first message to `resolved`. */
    readonly incidentId: string;
    /** The process that says so. */
    readonly instance: string;
    /** One sentence for people. */
    readonly summary: string;
  };
}

/** The body of a webhook. */
export type AlertPayload = Wire<AlertNotification>;

/** A notification on its way; `id` stays the same however often it is tried. */
export interface Outgoing {
  readonly id: string;
  readonly notification: AlertNotification;
}

/** 128 random bits. */
export const newId = (clock: Clock): string =>
  `msg_${Buffer.from(clock.token() + clock.token(), "latin1").toString("hex")}`;

export interface Occurrence {
  readonly alert: CheckedAlert;
  readonly crossing: Crossing;
  readonly condition: Condition;
  /** By the calendar: when the condition was first seen to hold, and now. */
  readonly since: number;
  readonly now: number;
  readonly value: number;
  readonly incidentId: string;
  readonly instance: string;
}

export function notificationOf(occurrence: Occurrence): AlertNotification {
  const { alert, crossing, condition, since, now, value, incidentId, instance } = occurrence;
  const status = crossing === "resolved" ? "resolved" : "firing";
  const { name, metric, comparison, threshold } = alert;
  return {
    type: `alert.${status}`,
    timestamp: new Date(now).toISOString(),
    data: {
      name,
      status,
      metric,
      comparison,
      threshold,
      value,
      since: new Date(since).toISOString(),
      repeat: condition.repeats,
      incidentId,
      instance,
      summary: summaryOf(alert, value, status),
    },
  };
}

function summaryOf({ metric, comparison, threshold }: CheckedAlert, value: number, status: string): string {
  const limit = `${wordsOf(comparison)} ${showFigure(metric, threshold)}`;
  const relation = status === "firing" ? "is" : "is no longer";
  return `${metric} ${relation} ${limit}: it is ${showFigure(metric, value)}`;
}

export const payloadOf = (notification: AlertNotification): AlertPayload => toWire(notification);

/** The caller's text as part of one line, whatever it holds: no line break, no control or direction mark. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();

export function subjectOf({ data }: AlertNotification): string {
  const again = data.status === "firing" && data.repeat > 0 ? " (still)" : "";
  return `[${data.status.toUpperCase()}] ${oneLine(data.name)}${again}`;
}

export function textOf({ timestamp, data }: AlertNotification): string {
  return [
    `${data.summary}.`,
    "",
    `alert:      ${oneLine(data.name)}`,
    `status:     ${data.status}`,
    `condition:  ${data.metric} ${data.comparison} ${data.threshold}`,
    `value:      ${data.value}`,
    `since:      ${data.since}`,
    `told at:    ${timestamp}`,
    ...(data.repeat > 0 ? [`told again: ${data.repeat}`] : []),
    `instance:   ${oneLine(data.instance)}`,
    `incident:   ${data.incidentId}`,
    "",
  ].join("\n");
}
