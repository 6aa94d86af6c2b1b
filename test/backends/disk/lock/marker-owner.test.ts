// Whether the owner of a marker is alive: by its boot, PID namespace, process, thread, and their start times.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../../src/backends/disk/lock/gate.ts";
import { isMarkerPath } from "../../../../src/backends/disk/lock/marker.ts";
import { ownMarkerName, processIn, trustMs } from "../../../../src/backends/disk/lock/marker-owner.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { freshFolders } from "../../../support/disk/folder.ts";

const freshFolder = freshFolders();

const PARTS = ["boot", "namespace", "pid", "began", "thread", "threadBegan"] as const;

/** The name of a marker of this thread, except for these parts. */
function nameWith(parts: Partial<Record<(typeof PARTS)[number], string>>): string {
  const own = ownMarkerName(systemClock).split("_");
  return own.map((part, at) => parts[PARTS[at] as (typeof PARTS)[number]] ?? part).join("_");
}

test("this thread is alive, and its names are distinct", () => {
  expect(trustMs(nameWith({}))).toBe(Number.POSITIVE_INFINITY);
  expect(processIn(nameWith({}))).toBe(process.pid);
  expect(nameWith({})).not.toBe(nameWith({}));
});

test.each([
  ["of a former boot", { boot: "0123" }],
  ["whose id has passed to another process", { began: "1" }],
  ["whose process has no such thread", { thread: "1" }],
  ["whose thread's id has passed to another one", { threadBegan: "1" }],
  ["whose process is gone", { pid: String(spawnSync(process.execPath, ["--version"]).pid) }],
])("an owner %s has ended", (_, parts) => {
  expect(trustMs(nameWith(parts))).toBe(0);
});

test("an owner that cannot be verified is believed for a while", () => {
  expect(trustMs(nameWith({ namespace: "1" }))).toBe(10_000);
  expect(trustMs(nameWith({ began: "" }))).toBe(60_000);
});

test("a marker from another PID namespace counts until it has not changed for a while, and is then removed", () => {
  const environment = freshFolder();
  const folder = join(environment, "opening");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, nameWith({ namespace: "1" })), "1");
  expect(new Gate(environment, systemClock).enter()).toBe(false);
  expect(readdirSync(folder)).toHaveLength(1);
  const later = { ...systemClock, wall: () => Date.now() + 11_000 };
  expect(new Gate(environment, later).enter()).toBe(true);
  expect(readdirSync(environment)).toEqual(["changing"]);
});

test("a file that is not a marker is neither counted nor removed", () => {
  const environment = freshFolder();
  const folder = join(environment, "opening");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "photo.jpg"), "photo");
  expect(new Gate(environment, systemClock).enter()).toBe(true);
  expect(readdirSync(folder)).toEqual(["photo.jpg"]);
  expect(isMarkerPath(join("opening", "photo.jpg"))).toBe(false);
  expect(isMarkerPath("photos")).toBe(false);
  expect(isMarkerPath("opening")).toBe(true);
  expect(isMarkerPath(join("changing", nameWith({})))).toBe(true);
  expect(isMarkerPath(join("changing", nameWith({}), "more"))).toBe(false);
});
