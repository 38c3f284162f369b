// auth.json: one credential per provider. Mode 0600 in a directory of mode 0700 at every moment, replaced as a whole, written by
// one daemon at a time (public-bugs 25). Entries we do not understand are kept as they are.
import { randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readFileSync, type Stats } from "node:fs";
import { open, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  acquireLock,
  CommandError,
  type Credential,
  type Credentials,
  errorMessage,
  SessionLockedError,
  z,
} from "mortise/extension";

const CredentialSchema = z.union([
  z.object({ type: z.literal("api_key"), key: z.string().min(1) }),
  z.looseObject({
    type: z.literal("oauth"),
    access: z.string().min(1),
    refresh: z.string().optional(),
    expires: z.number().optional().describe("Unix milliseconds"),
  }),
]);
const FileSchema = z.record(z.string(), z.unknown());
type Entries = Record<string, unknown>;

/** A refresh goes over the network while others wait. */
const LOCK_LIMIT_MS = 45_000;

/** Of a file that cannot be parsed: what begins with a quote and is as long as a key. It may be shown, and is no less a secret. */
const LONG_VALUES = /"([^"\s\\]{16,})/g;

export interface AuthFileOptions {
  /** MORTISE_HOME. */
  home: string;
  /** Told once of each thing a person should know. */
  report(level: "warning" | "error", text: string): void;
  /** Secrets from other places: environment, command line, models.yml. */
  otherSecrets(): Iterable<string>;
}

interface Snapshot {
  key: string;
  entries: Entries;
  /** Why the file cannot be used; then `entries` is empty and nothing may be lost. */
  broken: string | undefined;
}

export class AuthFile implements Credentials {
  readonly path: string;
  readonly #options: AuthFileOptions;
  readonly #told = new Set<string>();
  /** Every key and token that was ever read: a renewed one, or one in a file that broke, is still no text for others. */
  readonly #known = new Set<string>();
  readonly #refreshes = new Map<string, Promise<Credential>>();
  #snapshot: Snapshot | undefined;
  #writes: Promise<unknown> = Promise.resolve();

  constructor(options: AuthFileOptions) {
    this.#options = options;
    this.path = join(options.home, "auth.json");
  }

  get(provider: string): Credential | undefined {
    const { entries } = this.#read();
    const parsed = CredentialSchema.safeParse(Object.hasOwn(entries, provider) ? entries[provider] : undefined);
    if (parsed.success) return parsed.data;
    if (Object.hasOwn(entries, provider)) {
      this.#tell("warning", `The entry "${provider}" of ${this.path} is not a credential and is not used`);
    }
    return undefined;
  }

  list(): string[] {
    return Object.keys(this.#read().entries).filter((provider) => this.get(provider) !== undefined);
  }

  set(provider: string, credential: Credential): Promise<void> {
    return this.#locked(() => this.#write({ ...this.#read().entries, [provider]: credential }));
  }

  remove(provider: string): Promise<boolean> {
    return this.#locked(async () => {
      const { [provider]: found, ...rest } = this.#read().entries;
      if (found === undefined) return false;
      await this.#write(rest);
      return true;
    });
  }

  refresh(provider: string, refresh: (current: Credential) => Promise<Credential>): Promise<Credential> {
    let running = this.#refreshes.get(provider);
    if (running === undefined) {
      const seen = JSON.stringify(this.get(provider));
      running = this.#locked(async () => {
        const current = this.get(provider);
        if (current === undefined)
          throw new CommandError(`There is no credential for ${provider} any more: log in again`, "not_found");
        // Another daemon was faster; a second refresh would spend the refresh token that it got.
        if (JSON.stringify(current) !== seen) return current;
        const renewed = await refresh(current);
        await this.#write({ ...this.#read().entries, [provider]: renewed });
        return renewed;
      }).finally(() => this.#refreshes.delete(provider));
      this.#refreshes.set(provider, running);
    }
    return running;
  }

  secrets(): readonly string[] {
    for (const provider of this.list()) {
      const credential = this.get(provider);
      if (credential?.type === "api_key") this.#known.add(credential.key);
      else if (credential) {
        this.#known.add(credential.access);
        if (credential.refresh) this.#known.add(credential.refresh);
      }
    }
    const secrets = new Set([...this.#options.otherSecrets(), ...this.#known]);
    // The longest first: one may begin with another, and the rest of it would stay.
    return [...secrets].filter((secret) => secret !== "").sort((one, other) => other.length - one.length);
  }

  /** The entries as they are now; read again only when the file changed. */
  #read(): Snapshot {
    let stat: Stats | undefined;
    try {
      stat = lstatSync(this.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") return this.#unusable("?", errorMessage(error));
      this.#snapshot = { key: "none", entries: {}, broken: undefined };
      return this.#snapshot;
    }
    const key = `${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
    if (this.#snapshot?.key === key && !stat.isSymbolicLink()) return this.#snapshot;
    this.#tighten(stat);
    let text = "";
    try {
      text = readFileSync(this.path, "utf8");
      const parsed = FileSchema.safeParse(JSON.parse(text));
      if (!parsed.success) return this.#unusable(key, "expected an object with one entry per provider", text);
      this.#snapshot = { key, entries: parsed.data, broken: undefined };
      return this.#snapshot;
    } catch (error) {
      return this.#unusable(key, errorMessage(error), text);
    }
  }

  #unusable(key: string, why: string, text = ""): Snapshot {
    for (const [, value] of text.matchAll(LONG_VALUES)) if (value !== undefined) this.#known.add(value);
    this.#snapshot = { key, entries: {}, broken: why };
    this.#tell(
      "error",
      `Cannot read the credentials in ${this.path}: ${withoutContent(why)}. The file is left as it is: repair or remove it`,
    );
    return this.#snapshot;
  }

  #tighten(stat: Stats): void {
    if (stat.isSymbolicLink()) {
      this.#tell("warning", `${this.path} is a symbolic link: it is read, and the next login replaces it by a file`);
      return;
    }
    if ((stat.mode & 0o077) === 0) return;
    try {
      chmodSync(this.path, 0o600);
      this.#tell("warning", `${this.path} could be read by others (mode ${octal(stat.mode)}): it is 0600 now. Consider new keys`);
    } catch (error) {
      this.#tell("warning", `${this.path} can be read by others and its mode cannot be changed: ${errorMessage(error)}`);
    }
  }

  #tell(level: "warning" | "error", text: string): void {
    if (this.#told.has(text)) return;
    this.#told.add(text);
    this.#options.report(level, text);
  }

  /** Runs alone: after the writes of this process, and while no other daemon holds the lock. */
  #locked<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#writes.then(async () => {
      this.#directory();
      const lock = await this.#lock();
      try {
        this.#snapshot = undefined;
        return await work();
      } finally {
        lock.release();
      }
    });
    this.#writes = run.catch(() => {});
    return run;
  }

  #directory(): void {
    const { home } = this.#options;
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const { mode } = lstatSync(home);
    if ((mode & 0o077) === 0) return;
    chmodSync(home, 0o700);
    this.#tell("warning", `${home} was open to others (mode ${octal(mode)}): it is 0700 now`);
  }

  async #lock(): Promise<{ release(): void }> {
    // Not next to the file itself: a symbolic link would take the lock to its target.
    const name = join(this.#options.home, "auth");
    for (const start = performance.now(); ; ) {
      try {
        return acquireLock(name);
      } catch (error) {
        if (!(error instanceof SessionLockedError)) throw this.#notStored(error);
        if (performance.now() - start > LOCK_LIMIT_MS) {
          throw new CommandError(`The credentials are locked by another daemon: ${errorMessage(error)}`, "locked", {
            cause: error,
          });
        }
        await delay(20 + Math.random() * 30);
      }
    }
  }

  /** Replaces the file in one step. Whatever happens on the way, the old content stays readable. */
  async #write(entries: Entries): Promise<void> {
    await this.#keepBroken();
    const temporary = `${this.path}.${process.pid}.${randomBytes(6).toString("hex")}.tmp`;
    try {
      // Exclusive, so a link that somebody put there is not followed.
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(`${JSON.stringify(entries, null, 2)}\n`);
        await file.chmod(0o600);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.path);
    } catch (error) {
      await unlink(temporary).catch(() => {});
      throw this.#notStored(error);
    }
    await syncDirectory(this.#options.home);
    this.#snapshot = undefined;
  }

  #notStored(error: unknown): CommandError {
    return new CommandError(`Cannot store credentials in ${this.path}: ${errorMessage(error)}`, "internal", { cause: error });
  }

  async #keepBroken(): Promise<void> {
    if (this.#read().broken === undefined) return;
    const backup = `${this.path}.broken-${new Date().toISOString().replace(/[:.]/g, "-")}`;
    await rename(this.path, backup);
    this.#tell("warning", `The unreadable credentials were kept as ${backup}`);
  }
}

/** JSON errors quote the text they stumble over, and here that text may be a key. */
function withoutContent(why: string): string {
  const place = /position \d+(?: \(line \d+ column \d+\))?/.exec(why)?.[0];
  if (/JSON|token/i.test(why)) return place ? `not valid JSON at ${place}` : "not valid JSON";
  return why;
}

function octal(mode: number): string {
  return `0${(mode & 0o777).toString(8)}`;
}

async function syncDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, "r");
    await directory.sync().finally(() => directory.close());
  } catch {
    // Some file systems cannot sync a directory; the rename itself was atomic.
  }
}
