// Building plain objects key by key without ever touching a prototype.

const EMPTY = {};

/** Whether somebody has added enumerable properties to Object.prototype, so that for-in would visit them. */
export function isPrototypePolluted(): boolean {
  for (const _ in EMPTY) return true;
  return false;
}

/** Like `target[key] = value`, but `__proto__` becomes an own property too. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}
