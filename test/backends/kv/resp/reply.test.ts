// The code of an error reply, also of one that a script passes on.
import { expect, it } from "vitest";
import { ReplyError } from "../../../../src/backends/kv/resp/reply.ts";

const IN_SCRIPT =
  "ERR Error running script (call to f_d8f2fad9f8e86a53d2a6ebd960b33c4972cacc37): @user_script:1: ";

it.each([
  ["READONLY You can't write against a read only replica.", "READONLY"],
  ["READONLY You can't write against a read only replica. script: d8f2, on @user_script:1.", "READONLY"],
  ["ERR unknown command 'EVAL'", "ERR"],
  ["lower case", "ERR"],
  // Redis 6.0 and 6.2 word for word.
  [`${IN_SCRIPT}@user_script: 1: -READONLY You can't write against a read only replica.`, "READONLY"],
  [`${IN_SCRIPT}@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.`, "OOM"],
  [`${IN_SCRIPT}WRONGTYPE Operation against a key holding the wrong kind of value`, "WRONGTYPE"],
  [`${IN_SCRIPT}@user_script: 1: Wrong number of args calling Redis command From Lua script`, "ERR"],
])("%s", (message, code) => {
  expect(new ReplyError(message).code).toBe(code);
});
