// Credentials of a store: fixed, or from a function that is called for every connection.

/** What a password function returns, if not the password alone. */
export interface Credentials {
  /** Default: the configured user name, or the server's default user. */
  readonly username?: string | undefined;
  readonly password: string;
  /**
   * When the password expires, as a Date or in milliseconds since the epoch. Shortly before, the function is called again and
   * open connections log in with its new result. Default: never.
   */
  readonly expiresAt?: Date | number | undefined;
}

/** Called for every connection. If it throws or takes longer than connectTimeout, the connection has failed. */
export type PasswordFunction = () => string | Credentials | PromiseLike<string | Credentials>;
