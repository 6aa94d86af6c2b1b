// Many reads at once: how many commands the server gets, and that every value comes back under its own key.
import { expect, it } from "vitest";
import { redisCaches } from "../../support/redis-caches.ts";

const caches = redisCaches({ nearCache: false });
const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `key-${at}`);

/** The reads that the server has answered: how many commands, and how many of them asked for one key. */
async function reads(): Promise<{ readonly many: number; readonly single: number }> {
  const stats = await caches.server.cli("info", "commandstats");
  const calls = (command: string): number =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return { many: calls("mget"), single: calls("get") };
}

it.each([
  { keys: 100, poolSize: 1, commands: 1 },
  { keys: 512, poolSize: 1, commands: 1 },
  // Larger batches are split: the server serves no other client during one command.
  { keys: 513, poolSize: 1, commands: 2 },
  { keys: 1_300, poolSize: 1, commands: 3 },
  // Each key is read over the connection that receives its invalidations.
  { keys: 100, poolSize: 2, commands: 2 },
])("$keys keys over $poolSize connection(s) are $commands commands", async ({ keys, poolSize, commands }) => {
  const cache = caches.open({ poolSize });
  const wanted = names(keys);
  await cache.setMany(wanted.map((name) => [name, `value of ${name}`] as const));
  expect((await cache.getMany(wanted)).size).toBe(keys);
  const before = await reads();
  const asked = [...wanted, "absent", "key-\u00e9", "key-\ud800"].slice(-keys);
  const found = await cache.getMany(asked);
  const after = await reads();
  expect([...found]).toEqual(
    asked.flatMap((name) => (wanted.includes(name) ? [[name, `value of ${name}`]] : [])),
  );
  expect({ many: after.many - before.many, single: after.single - before.single }).toEqual({
    many: commands,
    single: 0,
  });
});
