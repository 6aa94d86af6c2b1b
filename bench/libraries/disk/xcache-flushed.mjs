// The same with every commit flushed to the disk.
import { open as openStore } from "./xcache.mjs";

export const open = (options) => openStore({ ...options, durability: "disk" });
