// A real SMTP server that keeps the messages it receives.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export interface Letter {
  readonly from: string;
  readonly to: readonly string[];
  readonly raw: string;
  readonly email: Email;
  /** Whether it arrived over TLS, and which user had logged in. */
  readonly secure: boolean;
  readonly user: string | undefined;
}

/** The server's reply code, such as 451. */
export const reply = (responseCode: number, message: string): Error =>
  Object.assign(new Error(message), { responseCode });

export class MailServer {
  readonly letters: Letter[] = [];
  readonly #server: SMTPServer;

  private constructor(options: SMTPServerOptions) {
    this.#server = new SMTPServer({
      disabledCommands: ["AUTH", "STARTTLS"],
      authOptional: true,
      disableReverseLookup: true,
      closeTimeout: 100,
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          const raw = Buffer.concat(chunks).toString("latin1");
          const { mailFrom, rcptTo } = session.envelope;
          PostalMime.parse(raw).then((email) => {
            this.letters.push({
              from: mailFrom === false ? "" : mailFrom.address,
              to: rcptTo.map(({ address }) => address),
              raw,
              email,
              secure: session.secure,
              user: session.user,
            });
            done();
          }, done);
        });
      },
      ...options,
    });
    this.#server.on("error", () => {});
  }

  static async start(options: SMTPServerOptions = {}): Promise<MailServer> {
    const server = new MailServer(options);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server.server, "listening");
    return server;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  openConnections(): number {
    return this.#server.connections.size;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
