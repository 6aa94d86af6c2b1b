// A master that becomes a replica and keeps its connections: data it copies from another server is never served.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SingleServer } from "../../../src/backends/kv/commands/single-server.ts";
import type { Reply } from "../../../src/backends/kv/resp/reply.ts";
import { KvNode, type NodeHost } from "../../../src/backends/kv/server/node.ts";
import { bulk, FakeServer, greet, type Script } from "../../support/kv/fake-server.ts";
import { nodeHost } from "../../support/kv/node-host.ts";
import { until } from "../../support/until.ts";

const EMPTIED = ">2\r\n+invalidate\r\n_\r\n";

interface Identity {
  readonly role: "master" | "slave";
  readonly history: string;
  readonly former?: string;
  readonly offset?: number;
}

const info = ({ role, history, former, offset = 100 }: Identity): string =>
  bulk(
    [
      "redis_version:7.0.0",
      "run_id:fake",
      `role:${role}`,
      `master_replid:${history}`,
      `master_repl_offset:${offset}`,
      ...(former === undefined ? [] : [`master_replid2:${former}`, "second_repl_offset:50"]),
      "",
    ].join("\r\n"),
  );

let server: FakeServer;
let identity: Identity;
let script: Script;
let node: KvNode;

beforeEach(async () => {
  identity = { role: "master", history: "first" };
  script = () => undefined;
  server = await FakeServer.start(
    (command, client) =>
      script(command, client) ?? (command[0] === "INFO" ? info(identity) : greet(command, client)),
  );
});
afterEach(async () => {
  node.close();
  await server.stop();
});

async function connect(host: Partial<NodeHost> = {}): Promise<void> {
  node = new KvNode(() => server.endpoint, { ...nodeHost(), ...host });
  await node.connect();
}

const read = (key: string): Promise<string> =>
  new Promise((resolve, reject) =>
    node.link(key).read(key, true, { resolve: (reply: Reply) => resolve(String(reply)), reject }),
  );

const command = (...args: string[]): Promise<unknown> => node.links[0]!.command(...args);

describe("when a server reports that its data was flushed", () => {
  it.each<[string, Identity]>([
    ["is a replica", { role: "slave", history: "other" }],
    ["was a replica meanwhile", { role: "master", history: "third", former: "other" }],
  ])("its later answers are not served if it %s", async (_, next) => {
    await connect();
    script = ([name], client) => {
      if (name !== "GET") return undefined;
      if (client !== server.clients[0]) return bulk("right");
      identity = next;
      return `${EMPTIED}${bulk("what the other server has")}`;
    };
    const reading = read("k");
    // The reply, and the answer to the role check that follows it.
    await until(() => server.clients[0]!.commands.filter(([name]) => name === "INFO").length === 2, {
      what: "the server is asked",
    });
    identity = { role: "master", history: "fourth", former: "first" };
    expect(await reading).toBe("right");
  });

  it("its answers are served, in order, if it is still the master", async () => {
    await connect();
    script = ([name, key]) => {
      if (name === "GET") return `${key === "a" ? EMPTIED : ""}${bulk(`value of ${key}`)}`;
      return name === "SET" ? "+OK\r\n" : undefined;
    };
    const done: unknown[] = [];
    const note = (value: unknown): number => done.push(value);
    await Promise.all([read("a").then(note), command("SET", "b", "1").then(note), read("c").then(note)]);
    expect(done.map(String).sort()).toEqual(["OK", "value of a", "value of c"]);
    expect(server.clients).toHaveLength(1);
    expect(await read("d")).toBe("value of d");
  });

  it("a connection that is still being prepared is dropped", async () => {
    let isFirst = true;
    await connect({
      onServer: async (_, connection) => {
        if (!isFirst) return;
        isFirst = false;
        identity = { role: "slave", history: "other" };
        server.clients[0]!.say(EMPTIED);
        await connection.command("PING").finally(() => {
          identity = { role: "master", history: "third", former: "other" };
        });
      },
    }).catch(() => {});
    await until(() => node.links[0]!.connection !== undefined, { what: "it is connected" });
    expect(server.clients).toHaveLength(2);
    expect(node.info.history?.id).toBe("third");
  });
});

describe("a server in use is asked whether it is still the master", () => {
  const inUse = (isDone: () => boolean, what: string): Promise<unknown> =>
    until(
      () => {
        node.trustedUntil();
        return isDone();
      },
      { what },
    );

  it("and dropped if it is not, even if it reports nothing", async () => {
    await connect();
    identity = { role: "slave", history: "first" };
    await inUse(() => node.links[0]!.connection === undefined, "the replica is given up");
  });

  it("and stays in use when its history is renamed, as by its first replica", async () => {
    await connect();
    identity = { role: "master", history: "renamed", offset: 200 };
    await inUse(() => node.info.history?.id === "renamed", "the new name is known");
    expect(server.clients).toHaveLength(1);
  });
});

describe("a write that a replica refuses has the master looked up again", () => {
  const READONLY = "READONLY You can't write against a read only replica.";
  const IN_SCRIPT = "ERR Error running script (call to f_d8f2): @user_script:5: @user_script: 5:";

  it.each([
    ["a command", ["SET", "k", "v"], `-${READONLY}`],
    ["a script", ["EVALSHA", "d8f2", "1", "k"], `-${READONLY} script: d8f2, on @user_script:5.`],
    ["a script of Redis 6", ["EVALSHA", "d8f2", "1", "k"], `-${IN_SCRIPT} -${READONLY}`],
  ])("in %s", async (_, args, refusal) => {
    script = ([name]) => (name === args[0] ? `${refusal}\r\n` : undefined);
    const router = new SingleServer(() => server.endpoint, nodeHost());
    [node] = router.nodes;
    await router.connect();
    const sent = new Promise((resolve, reject) => router.send("k", args, { resolve, reject }));
    await expect(sent).rejects.toThrow("READONLY");
    expect(node.links[0]!.connection).toBeUndefined();
  });
});
