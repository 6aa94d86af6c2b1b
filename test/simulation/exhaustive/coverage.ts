// Whether the exploration leaves nothing out, and whether what it finds is what happens in one world with both processes.
import { type Ending, explore } from "./explore.ts";
import type { Program } from "./programs.ts";
import { differenceOf, historyOf, replayed } from "./record.ts";
import { covers } from "./situation.ts";

export interface Coverage {
  readonly situations: number;
  /** When every event is tried everywhere. */
  readonly allSituations: number;
  readonly endings: number;
  /** Endings that only the latter found and that none of the former is as strict as. */
  readonly missing: readonly string[];
}

export async function coverageOf(program: Program): Promise<Coverage> {
  const reduced = await explore(program);
  const whole = await explore(program, { triesAll: true });
  const byStory = new Map<string, Ending[]>();
  for (const ending of reduced.endings) {
    const alike = byStory.get(ending.story);
    if (alike === undefined) byStory.set(ending.story, [ending]);
    else alike.push(ending);
  }
  const missing = whole.endings.filter(
    (ending) => !byStory.get(ending.story)?.some((each) => covers(each, ending)),
  );
  return {
    situations: reduced.situations,
    allSituations: whole.situations,
    endings: reduced.endings.length,
    missing: missing.map(({ story, seen }) => `${story}, having seen ${seen.join(" | ")}`),
  };
}

/** Runs each ending's interleaving again from the beginning, in one world. */
export async function differencesIn(program: Program): Promise<string[]> {
  const differences: string[] = [];
  await explore(program, {
    reached: async (way) => {
      const world = await replayed(way);
      const difference = differenceOf(historyOf(way), world.history);
      world.close();
      if (difference !== undefined) differences.push(difference);
    },
  });
  return differences;
}
