// A fake memcached server that answers as a script says, byte by byte.
import { type FakeConnection, FakeServerBase } from "../fake-server.ts";

export interface FakeClient extends FakeConnection {
  /** What it sent, line by line; the data of a `ms` is a line as well. */
  readonly lines: string[];
  /** What it sent, write by write as far as the network kept them apart. */
  readonly writes: string[];
}

/** What to answer to a line; undefined: nothing. */
export type Script = (line: string, client: FakeClient) => string | undefined;

/** What every server answers to a client that asks who it is. */
export const greet: Script = (line) => {
  if (line === "stats") return `STAT version 1.6.18\r\nSTAT time ${SOME_SECOND}\r\nEND\r\n`;
  if (line === "stats settings") return "STAT item_size_max 1048576\r\nSTAT cas_enabled yes\r\nEND\r\n";
  return line === "mn" ? "MN\r\n" : undefined;
};

const SOME_SECOND = 1_700_000_000;

export class FakeServer extends FakeServerBase<FakeClient> {
  protected readonly encoding = "latin1";
  /** May be replaced at any time. */
  script: Script;

  private constructor(script: Script) {
    super();
    this.script = script;
  }

  static start(script: Script = greet): Promise<FakeServer> {
    return new FakeServer(script).listen();
  }

  get url(): string {
    return `memcached://127.0.0.1:${this.port}`;
  }

  /** Resolves when some client has sent a line that begins like this. */
  received(beginning: string): Promise<FakeClient> {
    return this.clientThat(({ lines }) => lines.some((line) => line.startsWith(beginning)));
  }

  protected converse(connection: FakeConnection, received: () => void): FakeClient {
    const client: FakeClient = { ...connection, lines: [], writes: [] };
    let rest = "";
    client.socket.setEncoding("latin1").on("data", (text: string) => {
      client.writes.push(text);
      const lines = (rest + text).split("\r\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        client.lines.push(line);
        const answer = this.script(line, client);
        if (answer !== undefined) client.say(answer);
        received();
      }
    });
    return client;
  }
}
