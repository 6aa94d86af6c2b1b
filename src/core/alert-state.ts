// The states of a cache's alerts, handed from the alert manager to what reports on the cache.

/** An alert of one process, as other processes see it. */
export interface ReportedAlert {
  readonly name: string;
  /** Such as `hit_rate less_than 0.7`. */
  readonly condition: string;
  /** `pending`: the condition holds, but not long enough yet. */
  readonly status: "inactive" | "pending" | "firing";
  readonly value?: number;
  /** When the condition began to hold, ISO 8601. */
  readonly since?: string;
  /** `webhook`, `email`. */
  readonly destinations: readonly string[];
}

type AlertSource = () => readonly ReportedAlert[];

const sources = new WeakMap<object, Set<AlertSource>>();

/** Returns a function that withdraws it. */
export function reportAlerts(cache: object, source: AlertSource): () => void {
  const known = sources.get(cache) ?? new Set();
  sources.set(cache, known.add(source));
  return () => known.delete(source);
}

export function alertsOf(cache: object): readonly ReportedAlert[] {
  return [...(sources.get(cache) ?? [])].flatMap((source) => source());
}
