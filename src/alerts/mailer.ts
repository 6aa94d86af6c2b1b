// nodemailer, an optional peer, loaded when the first alert with recipients is added.
import type { Socket } from "node:net";
import { MissingPeerError } from "../core/errors.ts";
import { requirePackage } from "../core/lazy-builtin.ts";
import { requirePeerVersion } from "../core/peer-package.ts";

/** The part of `nodemailer` we use, so that its types are not required. */
export interface Mailer {
  createTransport(options: TransportOptions): MailTransport;
}

export interface TransportOptions {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly requireTLS: boolean;
  readonly auth?: { readonly user: string; readonly pass: string };
  readonly tls?: object;
  readonly logger: false;
  readonly disableFileAccess: true;
  readonly disableUrlAccess: true;
  /** Provides a connected socket. */
  getSocket(options: unknown, done: (error: Error | null, made?: { connection: Socket }) => void): void;
}

export interface MailTransport {
  sendMail(mail: Mail): Promise<SentMail>;
}

export interface Mail {
  readonly from: { readonly name: string; readonly address: string };
  readonly to: readonly string[];
  readonly envelope: { readonly from: string; readonly to: readonly string[] };
  readonly messageId: string;
  readonly inReplyTo?: string;
  readonly references?: string;
  readonly date: Date;
  readonly subject: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface SentMail {
  /** One per rejected recipient, if others were accepted. */
  readonly rejectedErrors?: readonly MailError[];
}

export interface MailError extends Error {
  /** Such as `EAUTH`. */
  readonly code?: string;
  /** The server's reply code, such as 550. */
  readonly responseCode?: number;
  readonly recipient?: string;
  readonly rejectedErrors?: readonly MailError[];
}

/** Throws MissingPeerError. */
export function loadMailer(load: () => unknown = () => requirePackage("nodemailer")): Mailer {
  try {
    const mailer = load() as Mailer;
    requirePeerVersion("nodemailer", "Email alerts");
    return mailer;
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND";
    if (!isAbsent) throw cause;
    throw new MissingPeerError("nodemailer", "Email alerts", { operation: "addAlert", cause });
  }
}
