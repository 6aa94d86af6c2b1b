// Which key of the store a record has, from where it lies.
import { AREA, keyOfPlain } from "./disk-key.ts";
import { fullKey } from "./stored-record.ts";

/** `bytes` is what lies under `diskKey`. */
export function storedKey(diskKey: Buffer, bytes: Buffer): string {
  return diskKey[0] === AREA.hashed ? fullKey(bytes) : keyOfPlain(diskKey);
}
