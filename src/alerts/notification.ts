// The notification of an alert: one record, as JSON for webhooks and as text for email.
import type { Clock } from "../core/clock.ts";
import { unicodePattern } from "../core/lazy-builtin.ts";
import { toWire, type Wire } from "../core/wire.ts";
import type { Condition, Crossing } from "./condition.ts";
import { type AlertComparison, wordsOf } from "./condition.ts";
import type { CheckedAlert } from "./definition.ts";
import { type AlertMetric, formatValue } from "./metric.ts";

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
    /** The current value. */
    readonly value: number;
    /** When the condition began to hold. */
    readonly since: string;
    /** 0 for the first message, then the number of the repetition. */
    readonly repeat: number;
    /** The same from the first message to `resolved`. */
    readonly incidentId: string;
    /** The reporting process. */
    readonly instance: string;
    /** One sentence for people. */
    readonly summary: string;
  };
}

/** The body of a webhook. */
export type AlertPayload = Wire<AlertNotification>;

/** A notification to be delivered; all attempts use the same `id`. */
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
  /** Wall-clock time when the condition began to hold, and now. */
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
  const limit = `${wordsOf(comparison)} ${formatValue(metric, threshold)}`;
  const relation = status === "firing" ? "is" : "is no longer";
  return `${metric} ${relation} ${limit}: it is ${formatValue(metric, value)}`;
}

export const payloadOf = (notification: AlertNotification): AlertPayload => toWire(notification);

/** Untrusted text as part of one line: without line breaks, control characters and direction marks. */
const notOnOneLine = unicodePattern(String.raw`[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+`, "gu");

export const oneLine = (text: string): string => text.replace(notOnOneLine(), " ").trim();

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
    `notified:   ${timestamp}`,
    ...(data.repeat > 0 ? [`repeat:     ${data.repeat}`] : []),
    `instance:   ${oneLine(data.instance)}`,
    `incident:   ${data.incidentId}`,
    "",
  ].join("\n");
}
