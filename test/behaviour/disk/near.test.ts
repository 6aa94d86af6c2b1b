// A near tier over a disk store: values are served as long as the store confirms that entry and stamps are unchanged.
import { describe, expect, it, test } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import { backendContract } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { sharedSubject } from "../../support/subject.ts";

const freshFolder = freshFolders();

const contractFolder = freshFolder();
const client = (): DiskBackend => new DiskBackend({ directory: contractFolder });

backendContract(
  sharedSubject({
    name: "disk with a near tier",
    offers: { scan: true, push: false },
    client,
    config: { nearCache: true },
  }),
  { describe, it: it.concurrent },
);

test("a hit returns the value decoded before, until another process changes the entry or one of its stamps", async () => {
  const directory = freshFolder();
  const near = { maxEntries: 100, maxBytes: 2 ** 20, values: "shared" } as const;
  const cache = new XCache({ backend: new DiskBackend({ directory }), keyPrefix: "near", nearCache: near });
  await using other = new DiskProcess(
    `
    const cache = await openCache({ keyPrefix: "near" });
    await cache.connect();
    say("ready");
    for (;;) {
      const { way } = await nextMessage();
      if (way === "tags") await cache.invalidateTags("tag");
      else if (way === "clear") await cache.clear();
      else if (way === "delete") await cache.delete("key");
      else if (way === "set") await cache.set("key", { is: "new" });
      say("done");
    }
  `,
    { directory },
  );
  await other.heard("ready");
  for (const way of ["tags", "clear", "delete", "set"]) {
    await cache.set("key", { is: "old" }, { tags: ["tag"] });
    const first = await cache.get("key");
    expect(first).toEqual({ is: "old" });
    expect(await cache.get("key"), way).toBe(first);
    other.tell({ way });
    await other.heard("done");
    expect(await cache.get("key"), way).toEqual(way === "set" ? { is: "new" } : undefined);
  }
  await cache.disconnect();
});
