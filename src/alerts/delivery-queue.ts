// Undelivered messages of one alert for one destination, in order and without superseded ones.
import type { Outgoing } from "./notification.ts";

export class Undelivered {
  readonly outgoing: Outgoing;
  attempts = 0;

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }

  announcesFiringOf(incidentId: string): boolean {
    const { status, incidentId: own } = this.outgoing.notification.data;
    return status === "firing" && own === incidentId;
  }

  announcesResolutionOf(incidentId: string): boolean {
    const { status, incidentId: own } = this.outgoing.notification.data;
    return status === "resolved" && own === incidentId;
  }
}

/**
 * Never holds more than three messages, however long the destination is down: of a resolved incident at most the
 * resolution is kept, and nothing if its firing was never attempted.
 */
export class DeliveryQueue {
  #queue: Undelivered[] = [];

  get size(): number {
    return this.#queue.length;
  }

  get first(): Undelivered | undefined {
    return this.#queue[0];
  }

  /** `inFlight` is being sent and cannot be withdrawn. Returns how many messages were superseded. */
  add(outgoing: Outgoing, inFlight: Undelivered | undefined): number {
    const { status, repeat, incidentId } = outgoing.notification.data;
    const firing = this.#queue.filter((each) => each.announcesFiringOf(incidentId));
    if (status === "firing") {
      // The destination has yet to receive the first message; a repeat would add nothing.
      if (repeat > 0 && firing.length > 0) return 1;
      this.#queue.push(new Undelivered(outgoing));
      return 0;
    }
    const superseded = firing.filter((each) => each !== inFlight);
    this.drop((each) => superseded.includes(each));
    const neverAttempted = superseded.some(
      ({ attempts, outgoing: { notification } }) => attempts === 0 && notification.data.repeat === 0,
    );
    if (!neverAttempted) this.#queue.push(new Undelivered(outgoing));
    return superseded.length + (neverAttempted ? 1 : 0);
  }

  /** Whether a failed attempt need not be repeated, because the resolution of its incident is queued. */
  isSuperseded(undelivered: Undelivered): boolean {
    const { incidentId } = undelivered.outgoing.notification.data;
    return (
      undelivered.announcesFiringOf(incidentId) &&
      this.#queue.some((each) => each.announcesResolutionOf(incidentId))
    );
  }

  remove(undelivered: Undelivered): void {
    this.drop((each) => each === undelivered);
  }

  /** Removes the matching messages; returns how many. */
  drop(isDropped: (undelivered: Undelivered) => boolean): number {
    const before = this.#queue.length;
    this.#queue = this.#queue.filter((each) => !isDropped(each));
    return before - this.#queue.length;
  }
}
