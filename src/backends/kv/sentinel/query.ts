// Queries one sentinel for the master and parses its replies and messages.
import type { HostPort } from "../../../core/address/address.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { nameOf } from "../../wire/socket.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { Connection, type ConnectionSettings } from "../server/connection.ts";

/** Connection settings for sentinels, which have their own login. */
export type SentinelSettings = Omit<ConnectionSettings, "endpoint">;

export interface SentinelAnswer {
  readonly by: HostPort;
  readonly master: HostPort;
  /** The other sentinels it knows. */
  readonly others: readonly HostPort[];
}

/** A sentinel does not know the master by this name. */
export class UnknownMasterError extends ConnectionError {
  constructor(by: HostPort, name: string) {
    super(`${nameOf(by)} knows no master named ${JSON.stringify(name)}`, {
      hint: "Check the name in kv_url, as in redis+sentinel://host1,host2/name; SENTINEL MASTERS lists the names.",
    });
  }
}

export const masterQuery = (name: string): [string, ...string[]] => [
  "SENTINEL",
  "GET-MASTER-ADDR-BY-NAME",
  name,
];

/** Rejects with an XCacheError if the sentinel does not answer or does not name a master. */
export async function querySentinel(
  settings: SentinelSettings,
  by: HostPort,
  name: string,
  signal: AbortSignal,
): Promise<SentinelAnswer> {
  const listener = { pushed: () => {}, closed: () => {}, signal };
  const connection = await Connection.open({ ...settings, endpoint: by }, listener);
  try {
    const [master, others] = await Promise.all([
      connection.command(...masterQuery(name)),
      // Optional: a failure only means that no further sentinels are discovered.
      connection.command("SENTINEL", "SENTINELS", name).catch(() => null),
    ]);
    const { translate = (announced) => announced } = settings;
    return {
      by,
      master: translate(masterIn(master, by, name)),
      others: sentinelsIn(others).map((other) => translate(other)),
    };
  } catch (thrown) {
    if (!(thrown instanceof ReplyError)) throw thrown;
    throw new ConnectionError(`${nameOf(by)} answered: ${thrown.message}`, { cause: thrown });
  } finally {
    connection.destroy(new ConnectionError("the sentinel has answered"));
  }
}

/** Parses the reply to `masterQuery`. */
export function masterIn(answer: Reply, by: HostPort, name: string): HostPort {
  if (answer === null) throw new UnknownMasterError(by, name);
  const master = Array.isArray(answer) ? hostPort(answer[0], answer[1]) : undefined;
  if (master === undefined) throw new ConnectionError(`${nameOf(by)} names no address for the master`);
  return master;
}

function sentinelsIn(answer: Reply): readonly HostPort[] {
  if (!Array.isArray(answer)) return [];
  return answer.map(sentinelIn).filter((sentinel) => sentinel !== undefined);
}

/** Field names and values alternate. */
function sentinelIn(fields: Reply): HostPort | undefined {
  if (!Array.isArray(fields)) return undefined;
  const field = (name: string): Reply | undefined =>
    fields.find((_, at) => at % 2 === 1 && String(fields[at - 1]) === name);
  return hostPort(field("ip"), field("port"));
}

/** The new master in a message on the channel +switch-master: `name old-host old-port host port`. */
export function masterInMessage(push: readonly Reply[], name: string): HostPort | undefined {
  const [kind, channel, message] = push.map(String);
  if (kind !== "message" || channel !== SWITCH_CHANNEL || message === undefined) return undefined;
  const [masterName, , , host, port] = message.split(" ");
  return masterName === name ? hostPort(host, port) : undefined;
}

/** The channel on which sentinels announce a new master. */
export const SWITCH_CHANNEL = "+switch-master";

function hostPort(host: Reply | undefined, port: Reply | undefined): HostPort | undefined {
  const number = Number(String(port));
  if (host === undefined || String(host) === "" || !Number.isInteger(number)) return undefined;
  return number < 1 || number > 65_535 ? undefined : { host: String(host), port: number };
}

export function isSame(one: HostPort | undefined, other: HostPort | undefined): boolean {
  return one !== undefined && one.host === other?.host && one.port === other.port;
}
