// When a cluster server replaces one in use, the client meets it at once, even without commands. On scripted servers.
import { expect, test } from "vitest";
import { LAST, Scene, send } from "../../support/kv/cluster-scene.ts";
import { until } from "../../support/until.ts";

test("the successor of a server in use is met at once, without any command for it", async () => {
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
