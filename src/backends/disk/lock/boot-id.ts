// Which boot of the machine this is.
import { existsSync, readFileSync } from "node:fs";

/** Another one after every start of the machine; undefined where the system does not tell. */
export function readBootId(): string | undefined {
  const file = "/proc/sys/kernel/random/boot_id";
  try {
    return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
  } catch {
    return undefined;
  }
}
