// The world that every exploration begins in: both processes know the stamps and have the value in their near tiers.
import { connectAll, deliverAll } from "../scheduler.ts";
import { World } from "../world.ts";
import { OPERATIONS, SETTINGS } from "./programs.ts";

export async function preparedWorld(timeline?: string[]): Promise<World> {
  const world = new World(SETTINGS, timeline);
  await connectAll(world);
  world.calls.begin(0, OPERATIONS.set);
  await deliverAll(world, false);
  for (const { index } of world.processes) world.readAll(index);
  await deliverAll(world, false);
  return world;
}
