// One run of an alert manager, from start() to stop(): looks at the cache, judges every alert, tells what changed.
import type { Clock, Timer } from "../core/clock.ts";
import { toError } from "../core/events.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { compares } from "./comparison.ts";
import { type AlertStatus, Condition, type Crossing } from "./condition.ts";
import type { CheckedAlert } from "./definition.ts";
import type { Delivery } from "./delivery.ts";
import { type AlertMetric, type Reading, readMetric } from "./metric.ts";
import { newId, notificationOf } from "./notification.ts";
import { type MetricsSnapshot, type MetricsSource, SnapshotReader } from "./snapshot.ts";

/** How an alert stands. */
export interface AlertState {
  readonly name: string;
  readonly metric: AlertMetric;
  /** `pending`: the condition holds, but not for long enough yet. */
  readonly status: AlertStatus;
  /** At the last look; undefined when there was none, or no data. */
  readonly value?: number;
  /** Why there is no value. */
  readonly noData?: string;
  /** When the condition was first seen to hold, ISO 8601; unless inactive. */
  readonly since?: string;
}

export interface MonitorHost {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly instance: string;
  channelsOf(alert: CheckedAlert): readonly Delivery[];
  report(error: Error): void;
}

/** What people and receivers go by. Lengths of time do not: the calendar may be put right meanwhile. */
const calendar = (clock: Clock): number => clock.wall?.() ?? clock.now();

/** An alert in this run. */
class Watched {
  readonly alert: CheckedAlert;
  readonly condition: Condition;
  readonly channels: readonly Delivery[];
  reading: Reading = { noData: "not looked yet" };
  incidentId = "";
  /** When the condition was first seen to hold, by the calendar of that moment. */
  #since = 0;

  constructor(alert: CheckedAlert, channels: readonly Delivery[]) {
    this.alert = alert;
    this.condition = new Condition(alert);
    this.channels = channels;
  }

  get since(): number {
    return this.#since;
  }

  judge(look: MetricsSnapshot, clock: Clock): Crossing | undefined {
    this.reading = readMetric(this.alert.metric, look);
    const { comparison, threshold } = this.alert;
    const holds = "value" in this.reading ? compares(this.reading.value, comparison, threshold) : undefined;
    const wasInactive = this.condition.status === "inactive";
    const crossing = this.condition.judge(holds, clock.now());
    if (wasInactive && this.condition.status !== "inactive") this.#since = calendar(clock);
    return crossing;
  }

  get state(): AlertState {
    const { name, metric } = this.alert;
    const { status } = this.condition;
    const began = status === "inactive" ? {} : { since: new Date(this.#since).toISOString() };
    return { name, metric, status, ...this.reading, ...began };
  }
}

export class AlertMonitor {
  readonly #host: MonitorHost;
  readonly #observer: SnapshotReader;
  readonly #watched: Watched[] = [];
  #timer: Timer | undefined;

  constructor(source: MetricsSource, alerts: Iterable<CheckedAlert>, host: MonitorHost) {
    this.#host = host;
    this.#observer = new SnapshotReader(source, host.clock);
    for (const alert of alerts) this.add(alert);
    this.#guarded(() => {
      source.startMetricsCollection?.();
      this.#observer.begin();
    });
    this.#schedule();
  }

  add(alert: CheckedAlert): void {
    this.#watched.push(new Watched(alert, this.#host.channelsOf(alert)));
  }

  get states(): readonly AlertState[] {
    return this.#watched.map(({ state }) => state);
  }

  /** Messages that no destination has accepted yet. */
  get pending(): number {
    return this.#channels.reduce((sum, channel) => sum + channel.pending, 0);
  }

  /** Looks no more; resolves when everything in flight has ended, at the limit by being cut off. */
  async close(limitMs: number): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const ended = Promise.all(this.#channels.map((channel) => channel.close()));
    await withDeadline(this.#host.clock, limitMs, ended, () => {
      for (const channel of this.#channels) channel.abort();
    });
    await ended;
  }

  get #channels(): readonly Delivery[] {
    return this.#watched.flatMap(({ channels }) => channels);
  }

  #schedule(): void {
    this.#timer = this.#host.clock.after(this.#host.intervalMs, () => {
      this.#schedule();
      this.#guarded(() => this.#look());
    });
  }

  #look(): void {
    const look = this.#observer.look();
    for (const watched of this.#watched) {
      const crossing = watched.judge(look, this.#host.clock);
      if (crossing !== undefined && "value" in watched.reading)
        this.#tell(watched, crossing, watched.reading.value);
    }
  }

  #tell(watched: Watched, crossing: Crossing, value: number): void {
    const { clock, instance } = this.#host;
    const id = newId(clock);
    if (crossing === "fired") watched.incidentId = id;
    const { alert, condition, since, incidentId, channels } = watched;
    const now = calendar(clock);
    const occurrence = { alert, crossing, condition, since, now, value, incidentId, instance };
    const outgoing = { id, notification: notificationOf(occurrence) };
    for (const channel of channels) channel.push(outgoing);
  }

  /** A cache whose figures cannot be read must not end the looks. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#host.report(toError(error));
    }
  }
}
