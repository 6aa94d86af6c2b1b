// A failing schedule as text: what was violated, and everything that happened, one line per event.
import type { Result } from "./run.ts";

export function describeResult({ plan, steps, violations, timeline }: Result): string {
  const { seed, processes, near, keys, namespaces } = plan.settings;
  const places = namespaces.length > 1 ? ", two namespaces" : "";
  return [
    `seed ${seed}: ${processes} processes, near tier ${near ? "on" : "off"}, ${keys.length} keys${places}; ${steps.length} steps`,
    ...violations.map(
      ({ guarantee, check, message }) => `  violates guarantee ${guarantee} (${check}): ${message}`,
    ),
    "",
    ...timeline,
  ].join("\n");
}
