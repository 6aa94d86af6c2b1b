// One run of an alert manager, from start() to stop(): reads the metrics, evaluates every alert, sends notifications.
import type { Clock, Timer } from "../core/clock.ts";
import { toError } from "../core/events.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { type AlertStatus, Condition, type Crossing, compares } from "./condition.ts";
import type { CheckedAlert } from "./definition.ts";
import type { Delivery } from "./delivery.ts";
import { type AlertMetric, type Reading, readMetric } from "./metric.ts";
import { newId, notificationOf } from "./notification.ts";
import { type MetricsSnapshot, type MetricsSource, SnapshotReader } from "./snapshot.ts";

/** The state of an alert. */
export interface AlertState {
  readonly name: string;
  readonly metric: AlertMetric;
  /** `pending`: the condition holds, but not long enough yet. */
  readonly status: AlertStatus;
  /** At the last check; undefined before the first one and without data. */
  readonly value?: number;
  /** Why there is no value. */
  readonly noData?: string;
  /** When the condition began to hold, ISO 8601; undefined if inactive. */
  readonly since?: string;
}

export interface MonitorHost {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly instance: string;
  deliveriesOf(alert: CheckedAlert): readonly Delivery[];
  report(error: Error): void;
}

/** For timestamps only. Durations use the monotonic clock, since the wall clock may be adjusted. */
const wallTime = (clock: Clock): number => clock.wall?.() ?? clock.now();

class MonitoredAlert {
  readonly alert: CheckedAlert;
  readonly condition: Condition;
  readonly deliveries: readonly Delivery[];
  reading: Reading = { noData: "not checked yet" };
  incidentId = "";
  /** Wall-clock time when the condition began to hold. */
  #since = 0;

  constructor(alert: CheckedAlert, deliveries: readonly Delivery[]) {
    this.alert = alert;
    this.condition = new Condition(alert);
    this.deliveries = deliveries;
  }

  get since(): number {
    return this.#since;
  }

  evaluate(snapshot: MetricsSnapshot, clock: Clock): Crossing | undefined {
    this.reading = readMetric(this.alert.metric, snapshot);
    const { comparison, threshold } = this.alert;
    const holds = "value" in this.reading ? compares(this.reading.value, comparison, threshold) : undefined;
    const wasInactive = this.condition.status === "inactive";
    const crossing = this.condition.evaluate(holds, clock.now());
    if (wasInactive && this.condition.status !== "inactive") this.#since = wallTime(clock);
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
  readonly #reader: SnapshotReader;
  readonly #alerts: MonitoredAlert[] = [];
  #timer: Timer | undefined;

  constructor(source: MetricsSource, alerts: Iterable<CheckedAlert>, host: MonitorHost) {
    this.#host = host;
    this.#reader = new SnapshotReader(source, host.clock);
    for (const alert of alerts) this.add(alert);
    this.#guarded(() => {
      source.startMetricsCollection?.();
      this.#reader.begin();
    });
    this.#schedule();
  }

  add(alert: CheckedAlert): void {
    this.#alerts.push(new MonitoredAlert(alert, this.#host.deliveriesOf(alert)));
  }

  get states(): readonly AlertState[] {
    return this.#alerts.map(({ state }) => state);
  }

  /** Messages not yet accepted by their destination. */
  get pending(): number {
    return this.#deliveries.reduce((sum, delivery) => sum + delivery.pending, 0);
  }

  /** Stops checking; resolves when all deliveries in flight have ended, which are aborted at the limit. */
  async close(limitMs: number): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const ended = Promise.all(this.#deliveries.map((delivery) => delivery.close()));
    await withDeadline(this.#host.clock, limitMs, ended, () => {
      for (const delivery of this.#deliveries) delivery.abort();
    });
    await ended;
  }

  get #deliveries(): readonly Delivery[] {
    return this.#alerts.flatMap(({ deliveries }) => deliveries);
  }

  #schedule(): void {
    this.#timer = this.#host.clock.after(this.#host.intervalMs, () => {
      this.#schedule();
      this.#guarded(() => this.#check());
    });
  }

  #check(): void {
    const snapshot = this.#reader.read();
    for (const monitored of this.#alerts) {
      const crossing = monitored.evaluate(snapshot, this.#host.clock);
      if (crossing !== undefined && "value" in monitored.reading)
        this.#notify(monitored, crossing, monitored.reading.value);
    }
  }

  #notify(monitored: MonitoredAlert, crossing: Crossing, value: number): void {
    const { clock, instance } = this.#host;
    const id = newId(clock);
    if (crossing === "fired") monitored.incidentId = id;
    const { alert, condition, since, incidentId, deliveries } = monitored;
    const now = wallTime(clock);
    const occurrence = { alert, crossing, condition, since, now, value, incidentId, instance };
    const outgoing = { id, notification: notificationOf(occurrence) };
    for (const delivery of deliveries) delivery.push(outgoing);
  }

  /** A cache whose metrics cannot be read must not stop the checks. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#host.report(toError(error));
    }
  }
}
