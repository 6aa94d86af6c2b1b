// Delivery by email: one message to all recipients of an alert, retried for those the server deferred.
import type { Socket } from "node:net";
import { nodeNet } from "../core/lazy-builtin.ts";
import { DeliveryFailure, type Destination } from "./destination.ts";
import type { Mail, MailError, Mailer } from "./mailer.ts";
import { type Outgoing, oneLine, subjectOf, textOf } from "./notification.ts";
import type { CheckedSmtp } from "./smtp.ts";

export class EmailDestination implements Destination {
  readonly label: string;
  readonly #smtp: CheckedSmtp;
  readonly #recipients: readonly string[];
  readonly #mailer: Mailer;
  /** The remaining recipients of a message that some already have. */
  readonly #remaining = new WeakMap<Outgoing, readonly string[]>();

  constructor(smtp: CheckedSmtp, recipients: readonly string[], mailer: Mailer) {
    this.#smtp = smtp;
    this.#recipients = recipients;
    this.#mailer = mailer;
    this.label = `email through ${smtp.host}:${smtp.port}`;
  }

  async send(outgoing: Outgoing, signal: AbortSignal): Promise<void> {
    const to = this.#remaining.get(outgoing) ?? this.#recipients;
    const rejected = await this.#submit(this.#mail(outgoing, to), signal);
    if (rejected.length === 0) return;
    const deferred = rejected.filter(({ responseCode }) => isTemporary(responseCode));
    const remaining = to.filter((address) => deferred.some(({ recipient }) => recipient === address));
    this.#remaining.set(outgoing, remaining);
    const message = `${rejected.length} of ${to.length} recipients rejected: ${this.#messageOf(rejected[0]!)}`;
    throw new DeliveryFailure(message, { retryable: remaining.length > 0 });
  }

  #mail({ id, notification }: Outgoing, to: readonly string[]): Mail {
    const { from } = this.#smtp;
    const domain = from.address.slice(from.address.lastIndexOf("@") + 1);
    const { data, timestamp } = notification;
    // The first message of an incident uses the incident's id, so that mail clients thread the later ones below it.
    const first = `<${data.incidentId}@${domain}>`;
    const isFirst = data.status === "firing" && data.repeat === 0;
    return {
      from,
      to: this.#recipients,
      envelope: { from: from.address, to },
      messageId: isFirst ? first : `<${id}@${domain}>`,
      ...(isFirst ? {} : { inReplyTo: first, references: first }),
      date: new Date(timestamp),
      subject: subjectOf(notification),
      text: textOf(notification),
      // RFC 3834: prevents out-of-office replies.
      headers: { "Auto-Submitted": "auto-generated" },
    };
  }

  /** Resolves with the rejected recipients. */
  async #submit(mail: Mail, signal: AbortSignal): Promise<readonly MailError[]> {
    const { host, port, secure, requireTls, auth, tls } = this.#smtp;
    const connection = new SmtpConnection(host, port);
    const transport = this.#mailer.createTransport({
      ...{ host, port, secure, requireTLS: requireTls },
      ...(auth === undefined ? {} : { auth }),
      ...(tls === undefined ? {} : { tls }),
      logger: false,
      disableFileAccess: true,
      disableUrlAccess: true,
      getSocket: (_, done) => connection.open(done),
    });
    try {
      const { rejectedErrors = [] } = await Promise.race([transport.sendMail(mail), aborted(signal)]);
      return rejectedErrors;
    } catch (error) {
      if (error instanceof DeliveryFailure) throw error;
      const { rejectedErrors = [] } = error as MailError;
      if (rejectedErrors.length > 0) return rejectedErrors;
      throw this.#failure(error as MailError);
    } finally {
      connection.close();
    }
  }

  #failure(error: MailError): DeliveryFailure {
    const { responseCode } = error;
    const retryable = responseCode === undefined || isTemporary(responseCode);
    // The error is not attached as the cause: it contains the SMTP conversation.
    return new DeliveryFailure(this.#messageOf(error), { retryable });
  }

  #messageOf({ message }: MailError): string {
    const { auth } = this.#smtp;
    const safe = auth === undefined ? message : withoutPassword(message, auth);
    return oneLine(safe).slice(0, MAX_MESSAGE_LENGTH);
  }
}

const MAX_MESSAGE_LENGTH = 300;

/** A server may echo the credentials in its reply; RFC 4616 and `AUTH LOGIN` send them in base64. */
function withoutPassword(text: string, { user, pass }: NonNullable<CheckedSmtp["auth"]>): string {
  const base64 = (secret: string): string => Buffer.from(secret).toString("base64");
  const spellings = [base64(`\0${user}\0${pass}`), base64(pass), pass];
  return spellings.reduce((shown, spelling) => shown.replaceAll(spelling, "***"), text);
}

/** RFC 5321 section 4.2.1: a 4yz reply means that a retry may succeed. */
const isTemporary = (responseCode = 0): boolean => responseCode >= 400 && responseCode < 500;

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** The connection of one attempt, opened here because the library has no way to abort its own. */
class SmtpConnection {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | undefined;
  #isClosed = false;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  open(done: (error: Error | null, made?: { connection: Socket }) => void): void {
    if (this.#isClosed) {
      done(new Error("the attempt is over"));
      return;
    }
    const socket = nodeNet().connect({ host: this.#host, port: this.#port });
    this.#socket = socket;
    const failed = (error: Error): void => done(error);
    socket.once("error", failed);
    socket.once("connect", () => {
      socket.removeListener("error", failed);
      done(null, { connection: socket });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.on("error", () => {});
    this.#socket?.destroy();
  }
}
