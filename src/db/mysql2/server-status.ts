// What MySQL and MariaDB say about a connection in their answers: the flags of its status, and what their errors mean.
import type { TransactionStatus } from "../../core/db-session.ts";

const IN_TRANSACTION = 0x1;
const AUTOCOMMIT = 0x2;
const NO_BACKSLASH_ESCAPES = 0x200;

/** Errors sent while the server closes the connection, or about an outcome it does not know. */
const NO_REFUSAL: ReadonlySet<number> = new Set([1053, 1077, 1079, 1152, 1180, 1184, 1927, 3169, 4031]);

/** A deadlock. */
const ROLLED_BACK: ReadonlySet<number> = new Set([1213, 1614]);

const IS_FOR_NEXT =
  /^(?:\s|\/\*[\s\S]*?\*\/)*set\b(?![\s\S]*\b(?:session|global)\b)[\s\S]*(?:transaction|isolation)/i;

/** With `autocommit` off, every statement belongs to a transaction. */
export function statusIn(flags: number): TransactionStatus {
  return (flags & IN_TRANSACTION) !== 0 || (flags & AUTOCOMMIT) === 0 ? "open" : "idle";
}

/** In this mode of the server a backslash in a literal is a backslash. */
export const isWithoutEscapes = (flags: number): boolean => (flags & NO_BACKSLASH_ESCAPES) !== 0;

/** Whether an error of the server means that the statement had no effect, and the connection is still usable. */
export const isRefusedBy = (errno: number): boolean => !NO_REFUSAL.has(errno);

/** Whether the server has rolled back the whole transaction. */
export const isRolledBackBy = (errno: number): boolean => ROLLED_BACK.has(errno);

/** Whether a statement sets something for the next transaction, which is the next statement: no question may come in between. */
export const isForNextTransaction = (text: string): boolean => IS_FOR_NEXT.test(text);
