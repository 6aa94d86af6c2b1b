// The primitive inside a Number, String, Boolean or BigInt object, whatever its own valueOf says.
import * as types from "node:util/types";

export function unbox(boxed: object): number | string | boolean | bigint {
  if (types.isNumberObject(boxed)) return Number.prototype.valueOf.call(boxed);
  if (types.isStringObject(boxed)) return String.prototype.valueOf.call(boxed);
  if (types.isBooleanObject(boxed)) return Boolean.prototype.valueOf.call(boxed);
  return BigInt.prototype.valueOf.call(boxed);
}
