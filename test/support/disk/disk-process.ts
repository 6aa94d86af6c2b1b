// A program on a disk store in a process of its own.
import { OwnProcess } from "../own-process.ts";

const PRELUDE = `
import { writeSync } from "node:fs";
import { DiskBackend } from "./backends/disk/backend.js";
const diskBackend = () => new DiskBackend({ directory: settings.directory, ...settings.options });
const openBackend = (host) => {
  const backend = diskBackend();
  backend.open({ ...HOST, ...host });
  return backend;
};
const openCache = async (config) => {
  const { XCache } = await import("./xcache.js");
  return new XCache({ backend: diskBackend(), ...config });
};
const entry = (key, bytes = Buffer.from("value")) => ({
  kind: "entry", version: systemClock.token(), key, namespaceStamps: [], tags: [],
  created: Date.now(), expires: Infinity, staleUntil: Infinity, payload: { format: 0, bytes },
});
`;

/** In its program also: `openBackend(host)`, `openCache(config)`, `entry(key, bytes)` and `writeSync`. */
export class DiskProcess extends OwnProcess {
  constructor(program: string, settings: { readonly directory: string; readonly [name: string]: unknown }) {
    super(PRELUDE + program, { settings });
  }
}
