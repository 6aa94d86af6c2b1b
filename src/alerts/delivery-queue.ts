// What one destination has still to be told of one alert: in order, and without what has become pointless.
import type { Outgoing } from "./notification.ts";

/** A message that is not delivered yet. */
export class Undelivered {
  readonly outgoing: Outgoing;
  attempts = 0;

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }

  tellsFiringOf(incidentId: string): boolean {
    const { status, incidentId: own } = this.outgoing.notification.data;
    return status === "firing" && own === incidentId;
  }

  tellsEndOf(incidentId: string): boolean {
    const { status, incidentId: own } = this.outgoing.notification.data;
    return status === "resolved" && own === incidentId;
  }
}

/**
 * Never holds more than three, however long the destination is away: of an incident that is over at most its end is left,
 * and nothing at all if its beginning was never tried.
 */
export class DeliveryQueue {
  #waiting: Undelivered[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  get first(): Undelivered | undefined {
    return this.#waiting[0];
  }

  /** `inFlight` is the first one while it is being sent: it cannot be taken back. Returns how many fell away. */
  add(outgoing: Outgoing, inFlight: Undelivered | undefined): number {
    const { status, repeat, incidentId } = outgoing.notification.data;
    const firing = this.#waiting.filter((each) => each.tellsFiringOf(incidentId));
    if (status === "firing") {
      // It is about to hear that the alert fires; to add that it still does would say nothing.
      if (repeat > 0 && firing.length > 0) return 1;
      this.#waiting.push(new Undelivered(outgoing));
      return 0;
    }
    const pointless = firing.filter((each) => each !== inFlight);
    this.drop((each) => pointless.includes(each));
    const neverHeard = pointless.some(
      ({ attempts, outgoing: { notification } }) => attempts === 0 && notification.data.repeat === 0,
    );
    if (!neverHeard) this.#waiting.push(new Undelivered(outgoing));
    return pointless.length + (neverHeard ? 1 : 0);
  }

  /** Whether an attempt that failed need not be repeated, because the end of its incident is next. */
  isOvertaken(undelivered: Undelivered): boolean {
    const { incidentId } = undelivered.outgoing.notification.data;
    return undelivered.tellsFiringOf(incidentId) && this.#waiting.some((each) => each.tellsEndOf(incidentId));
  }

  remove(undelivered: Undelivered): void {
    this.drop((each) => each === undelivered);
  }

  /** Lets go of all that `isDropped` says; how many there were. */
  drop(isDropped: (undelivered: Undelivered) => boolean): number {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((each) => !isDropped(each));
    return before - this.#waiting.length;
  }
}
