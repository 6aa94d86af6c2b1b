import { describe, expect, it } from "vitest";
import { Delivery, MAX_ATTEMPTS, retryDelayMs } from "../../src/alerts/delivery.ts";
import { DeliveryFailure, type Destination } from "../../src/alerts/destination.ts";
import type { Outgoing } from "../../src/alerts/notification.ts";
import { AlertDeliveryError } from "../../src/core/errors.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";

/** `firing 1`, `repeat 1` or `resolved 1`: a message of the first incident. */
function message(text: string): Outgoing {
  const [kind, incident] = text.split(" ");
  const status = kind === "resolved" ? "resolved" : "firing";
  return {
    id: text,
    notification: {
      type: `alert.${status}`,
      timestamp: "2026-01-01T00:00:00.000Z",
      data: {
        name: "low",
        status,
        metric: "hit_rate",
        comparison: "less_than",
        threshold: 0.7,
        value: 0.5,
        since: "2026-01-01T00:00:00.000Z",
        repeat: kind === "repeat" ? 1 : 0,
        incidentId: `incident ${incident}`,
        instance: "here",
        summary: "",
      },
    },
  };
}

type Outcome = "accept" | "fail" | "refuse" | "gone" | "hang" | Error;

/** A destination that produces the given outcomes in order, then accepts everything. */
class Scripted implements Destination {
  readonly label = "somewhere";
  readonly tried: string[] = [];
  outcomes: Outcome[];
  /** The outcome once `outcomes` is empty. */
  otherwise: Outcome = "accept";
  release: (() => void) | undefined;
  retryAfterMs = 0;

  constructor(...outcomes: Outcome[]) {
    this.outcomes = outcomes;
  }

  async send({ id }: Outgoing, signal: AbortSignal): Promise<void> {
    this.tried.push(id);
    const outcome = this.outcomes.shift() ?? this.otherwise;
    if (outcome === "accept") return;
    if (outcome instanceof Error) throw outcome;
    if (outcome === "hang") {
      await new Promise<void>((resolve, reject) => {
        this.release = resolve;
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return;
    }
    const { retryAfterMs } = this;
    throw new DeliveryFailure("it failed", {
      retryable: outcome === "fail",
      gone: outcome === "gone",
      retryAfterMs,
    });
  }
}

function channelTo(destination: Scripted) {
  const clock = new ManualClock();
  const counts = { delivered: 0, failedAttempts: 0, abandoned: 0, superseded: 0 };
  const errors: Error[] = [];
  const report = (error: Error): void => void errors.push(error);
  const channel = new Delivery(destination, { clock, counts, attemptMs: 10_000, report });
  const push = async (...texts: string[]): Promise<void> => {
    for (const text of texts) channel.push(message(text));
    await settle();
  };
  return { clock, counts, errors, channel, push };
}

/** Longer than any delay. */
const LONG = 600_000;

describe("a channel", () => {
  it("delivers in order, one at a time", async () => {
    const destination = new Scripted("hang");
    const { push, counts } = channelTo(destination);
    await push("firing 1", "resolved 1", "firing 2");
    expect(destination.tried).toEqual(["firing 1"]);
    destination.release?.();
    await settle();
    expect(destination.tried).toEqual(["firing 1", "resolved 1", "firing 2"]);
    expect(counts).toEqual({ delivered: 3, failedAttempts: 0, abandoned: 0, superseded: 0 });
  });

  it("retries after a growing delay, counts and reports each failure, and blocks nobody", async () => {
    const destination = new Scripted("fail", "fail");
    const { push, counts, errors, clock, channel } = channelTo(destination);
    await push("firing 1");
    expect(channel.pending).toBe(1);
    expect(errors[0]).toBeInstanceOf(AlertDeliveryError);
    expect(errors[0]?.message).toMatch(
      /^the alert "low" \(firing\) could not be delivered to somewhere: it failed \(attempt 1 of 10; next attempt in [345] s\)$/,
    );
    await clock.advance(5_000);
    expect(destination.tried).toHaveLength(2);
    await clock.advance(2_400);
    expect(destination.tried).toHaveLength(2);
    await clock.advance(7_600);
    expect(destination.tried).toEqual(["firing 1", "firing 1", "firing 1"]);
    expect(counts).toEqual({ delivered: 1, failedAttempts: 2, abandoned: 0, superseded: 0 });
    expect([clock.pending, channel.pending]).toEqual([0, 0]);
  });

  it("gives up after ten attempts and moves on to the next message", async () => {
    const destination = new Scripted();
    destination.otherwise = "fail";
    const { push, counts, errors, clock, channel } = channelTo(destination);
    await push("firing 1");
    await clock.advance(MAX_ATTEMPTS * LONG);
    expect(destination.tried).toHaveLength(MAX_ATTEMPTS);
    expect(errors.at(-1)?.message).toContain("(attempt 10 of 10; giving up)");
    expect(counts).toEqual({ delivered: 0, failedAttempts: 10, abandoned: 1, superseded: 0 });
    expect([clock.pending, channel.pending]).toEqual([0, 0]);
    destination.otherwise = "accept";
    await push("repeat 1");
    expect(destination.tried.at(-1)).toBe("repeat 1");
    expect(counts.delivered).toBe(1);
  });

  it("does not retry a permanently rejected message, but still sends the next one", async () => {
    const destination = new Scripted("refuse");
    const { push, counts, errors, clock } = channelTo(destination);
    await push("firing 1", "firing 2");
    expect(destination.tried).toEqual(["firing 1", "firing 2"]);
    expect(counts).toEqual({ delivered: 1, failedAttempts: 1, abandoned: 1, superseded: 0 });
    expect(errors[0]?.message).toContain("(attempt 1 of 10; giving up)");
    expect(clock.pending).toBe(0);
  });

  it("sends nothing more to a destination that reported itself gone", async () => {
    const destination = new Scripted("gone");
    const { push, counts } = channelTo(destination);
    await push("firing 1", "resolved 1");
    await push("firing 2");
    expect(destination.tried).toEqual(["firing 1"]);
    expect(counts).toMatchObject({ delivered: 0, failedAttempts: 1 });
    expect(counts.abandoned + counts.superseded).toBe(3);
  });

  it("waits at least as long as the destination asked for", async () => {
    const destination = new Scripted("fail");
    destination.retryAfterMs = 120_000;
    const { push, clock } = channelTo(destination);
    await push("firing 1");
    await clock.advance(120_000);
    expect(destination.tried).toHaveLength(1);
    await clock.advance(5_000);
    expect(destination.tried).toHaveLength(2);
  });

  it("aborts an attempt that takes too long and retries", async () => {
    const destination = new Scripted("hang");
    const { push, clock, errors, counts } = channelTo(destination);
    await push("firing 1");
    await clock.advance(9_999);
    expect(errors).toEqual([]);
    await clock.advance(1);
    expect(errors[0]?.message).toContain("it did not answer within 10 s");
    await clock.advance(5_000);
    expect(counts).toMatchObject({ delivered: 1, failedAttempts: 1 });
  });

  it("treats an unexpected error as final and redacts its credentials", async () => {
    const destination = new Scripted(new TypeError("no: https://user:Zq9@host/"));
    const { push, errors, clock, counts } = channelTo(destination);
    await push("firing 1");
    expect([counts.abandoned, clock.pending]).toEqual([1, 0]);
    expect(errors[0]?.message).toContain("no: https://***@host/");
  });
});

describe("messages that have become pointless", () => {
  it("drop the firing that failed before the incident ended, and send only the resolution", async () => {
    const destination = new Scripted("fail");
    const { push, clock, counts } = channelTo(destination);
    await push("firing 1");
    await push("resolved 1");
    expect(destination.tried).toEqual(["firing 1"]);
    await clock.advance(LONG);
    expect(destination.tried).toEqual(["firing 1", "resolved 1"]);
    expect(counts).toEqual({ delivered: 1, failedAttempts: 1, abandoned: 0, superseded: 1 });
  });

  it("drop a firing in flight that fails after the incident has ended", async () => {
    const destination = new Scripted("hang");
    const { push, clock, counts } = channelTo(destination);
    await push("firing 1", "resolved 1");
    await clock.advance(10_000);
    expect(counts).toMatchObject({ failedAttempts: 1, superseded: 1 });
    expect(destination.tried).toEqual(["firing 1"]);
    await clock.advance(LONG);
    expect(destination.tried).toEqual(["firing 1", "resolved 1"]);
  });

  it("drop the whole incident if the destination never heard of it", async () => {
    const destination = new Scripted("accept", "fail");
    const { push, clock, counts, channel } = channelTo(destination);
    await push("firing 1");
    await push("resolved 1");
    await push("firing 2", "resolved 2", "firing 3");
    expect(channel.pending).toBe(2);
    await clock.advance(LONG);
    expect(destination.tried).toEqual(["firing 1", "resolved 1", "resolved 1", "firing 3"]);
    expect(counts).toEqual({ delivered: 3, failedAttempts: 1, abandoned: 0, superseded: 2 });
  });

  it("drop a repeat while the first message is still in flight", async () => {
    const destination = new Scripted("fail", "accept", "hang");
    const { push, clock, counts } = channelTo(destination);
    await push("firing 1", "repeat 1");
    await clock.advance(LONG);
    expect(destination.tried).toEqual(["firing 1", "firing 1"]);
    await push("repeat 1");
    await push("repeat 1");
    expect(destination.tried).toEqual(["firing 1", "firing 1", "repeat 1"]);
    expect(counts).toMatchObject({ delivered: 1, superseded: 2 });
  });

  it("drop a failed repeat once the incident ends, and send the resolution", async () => {
    const destination = new Scripted("accept", "fail");
    const { push, clock } = channelTo(destination);
    await push("firing 1");
    await push("repeat 1");
    await push("resolved 1");
    await clock.advance(LONG);
    expect(destination.tried).toEqual(["firing 1", "repeat 1", "resolved 1"]);
  });

  it("leave at most three messages queued, however often an alert comes and goes", async () => {
    const destination = new Scripted("accept");
    destination.otherwise = "hang";
    const { push, channel } = channelTo(destination);
    await push("firing 0");
    for (let incident = 0; incident < 100; incident++) {
      await push(`repeat ${incident}`, `resolved ${incident}`, `firing ${incident + 1}`);
      expect(channel.pending).toBeLessThanOrEqual(3);
    }
  });
});

describe("closing a channel", () => {
  it("waits for what is in flight and sends what was never attempted", async () => {
    const destination = new Scripted("hang");
    const { push, channel, counts } = channelTo(destination);
    await push("firing 1", "resolved 1");
    let isClosed = false;
    const closed = channel.close().then(() => {
      isClosed = true;
    });
    await settle();
    expect(isClosed).toBe(false);
    destination.release?.();
    await closed;
    expect(destination.tried).toEqual(["firing 1", "resolved 1"]);
    expect(counts).toMatchObject({ delivered: 2, abandoned: 0 });
  });

  it("abandons what is waiting for a retry, and leaves no timer", async () => {
    const destination = new Scripted("fail");
    const { push, channel, counts, clock } = channelTo(destination);
    await push("firing 1", "firing 2");
    await channel.close();
    expect(destination.tried).toEqual(["firing 1", "firing 2"]);
    expect(counts).toEqual({ delivered: 1, failedAttempts: 1, abandoned: 1, superseded: 0 });
    expect([clock.pending, channel.pending]).toEqual([0, 0]);
  });

  it("attempts nothing twice", async () => {
    const destination = new Scripted("hang", "fail");
    const { push, channel, counts, clock } = channelTo(destination);
    await push("firing 1", "firing 2");
    const closed = channel.close();
    await clock.advance(10_000);
    await closed;
    expect(destination.tried).toEqual(["firing 1", "firing 2"]);
    expect(counts).toEqual({ delivered: 0, failedAttempts: 2, abandoned: 2, superseded: 0 });
    expect(clock.pending).toBe(0);
  });

  it("can be cut short", async () => {
    const destination = new Scripted("hang");
    const { push, channel, counts, clock } = channelTo(destination);
    await push("firing 1", "firing 2");
    const closed = channel.close();
    channel.abort();
    await closed;
    expect(destination.tried).toEqual(["firing 1"]);
    expect(counts).toMatchObject({ delivered: 0, abandoned: 2 });
    expect([clock.pending, channel.pending]).toEqual([0, 0]);
  });
});

describe("the delay before another attempt", () => {
  it("doubles from 5 s to 5 min, half of it random, on top of any delay the destination asked for", () => {
    expect([1, 2, 3, 6, 7, 20].map((failures) => retryDelayMs(failures, 1, 0))).toEqual([
      5_000, 10_000, 20_000, 160_000, 300_000, 300_000,
    ]);
    expect(retryDelayMs(3, 0, 0)).toBe(10_000);
    expect(retryDelayMs(1, 0, 60_000)).toBe(62_500);
  });
});
