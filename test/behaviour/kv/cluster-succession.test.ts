// A server of a cluster takes another one's place: whoever used that one meets it, used or not. On scripted servers.
import { expect, test } from "vitest";
import { LAST, Scene, send } from "../../support/kv/cluster-scene.ts";
import { until } from "../../support/until.ts";

test("a server in the place of one that was used is met at once, though nobody sends it anything", async () => {
  await using scene = await Scene.start(3);
  const [one, two, heir] = [scene.servers[0]!, scene.servers[1]!, scene.servers[2]!];
  scene.tell([0, LAST - 1, one.place], [LAST, LAST, two.place]);
  const met: { readonly where: unknown; readonly isKnown: boolean }[] = [];
  const client = scene.client([one.place, two.place], {
    met: async (node, connection) =>
      void met.push({ where: connection.endpoint, isKnown: node.lastProvenAt > 0 }),
  });
  await client.connect();
  await send(client, "k", "SET", "k", "1");
  scene.tell([0, LAST - 1, heir.place], [LAST, LAST, two.place]);
  await one.fake.stop();
  await until(() => met.length === 3, { what: "the heir is met" });
  expect(met[2]).toEqual({ where: heir.place, isKnown: true });
  expect(heir.keyCommands).toEqual([]);
});
