// The clock of a server process that a test can set while it runs, by libfaketime.
import { execFileSync } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binaryOf } from "./machine.ts";

const fileIn = (folder: string): string => join(folder, "clock");

/** The environment of a process whose clock `setClock` changes. Its timers and timeouts stay as they are. */
export function movableClock(folder: string): Record<string, string> {
  setClock(folder, 0);
  return {
    // The C library's allocator instead of jemalloc: that reads the clock before libfaketime is ready.
    LD_PRELOAD: `${faketimeLibrary()} ${cLibrary()}`,
    FAKETIME_TIMESTAMP_FILE: fileIn(folder),
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

export function setClock(folder: string, aheadSeconds: number): void {
  const file = fileIn(folder);
  // At once: the server may be reading it.
  writeFileSync(`${file}.new`, `${aheadSeconds < 0 ? "" : "+"}${aheadSeconds}\n`);
  renameSync(`${file}.new`, file);
}

/** Where the wrapper finds its library. */
function faketimeLibrary(): string {
  return execFileSync(binaryOf("faketime"), ["-f", "+0", "printenv", "LD_PRELOAD"], {
    encoding: "utf8",
  }).trim();
}

/** The one that this process runs on. */
function cLibrary(): string {
  const path = /\s(\/\S*\/(?:libc[.-]\S*|ld-musl\S*))\n/.exec(readFileSync("/proc/self/maps", "utf8"))?.[1];
  if (path === undefined) throw new Error("the C library of this process was not found in /proc/self/maps");
  return path;
}
