// Values of models.yml: `!command` runs once per process, the name of an environment variable gives its value, anything else
// stands for itself.
import { spawn } from "node:child_process";
import { ProviderError } from "mortise/extension";

/** Password managers ask for a fingerprint; longer than this nobody is there. */
const COMMAND_LIMIT_MS = 10_000;
/** How long is waited for the last output of a command that has ended: what it left in the background may hold the pipe for ever. */
const LAST_OUTPUT_MS = 200;
/** No key comes near it. */
const MAX_OUTPUT_BYTES = 64 * 1024;

export class Values {
  readonly #env: () => NodeJS.ProcessEnv;
  readonly #commands = new Map<string, Promise<string>>();
  readonly #secrets = new Set<string>();
  /** Ends what runs when nobody waits for it any more. */
  readonly #closing = new AbortController();
  readonly #limitMs: number;

  constructor(env: () => NodeJS.ProcessEnv, limitMs = COMMAND_LIMIT_MS) {
    this.#env = env;
    this.#limitMs = limitMs;
  }

  /** True when the value resolves to something, as far as can be said without running a command. */
  isSet(value: string | undefined): boolean {
    if (value === undefined || value === "") return false;
    return value.startsWith("!") || (this.#fromEnv(value) ?? value).trim() !== "";
  }

  /** The value as far as it is known without running a command. */
  peek(value: string | undefined): string | undefined {
    return value === undefined || value.startsWith("!") ? undefined : (this.#fromEnv(value) ?? value).trim();
  }

  /** @throws {ProviderError} kind auth when the command fails; its output is never quoted. */
  async resolve(value: string): Promise<string> {
    const found = value.startsWith("!") ? await this.#command(value.slice(1).trim()) : (this.#fromEnv(value) ?? value);
    // White space around a value comes from the file it was copied out of.
    const resolved = found.trim();
    if (resolved !== "") this.#secrets.add(resolved);
    return resolved;
  }

  /** What was resolved so far. */
  get secrets(): ReadonlySet<string> {
    return this.#secrets;
  }

  /** Ends the commands that still run. */
  close(): void {
    this.#closing.abort();
  }

  #fromEnv(value: string): string | undefined {
    const name = /^\$\{?([A-Za-z_]\w*)\}?$/.exec(value)?.[1] ?? value;
    const env = this.#env();
    if (Object.hasOwn(env, name)) return env[name];
    // `$NAME` is meant as a variable even when it is not set, and no key looks like `ACME_API_KEY`.
    return name === value && !/^[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)$/.test(name) ? undefined : "";
  }

  #command(command: string): Promise<string> {
    let running = this.#commands.get(command);
    if (running === undefined) {
      if (command.includes("\0")) throw new ProviderError("A command of models.yml holds a null byte", "auth");
      running = run(command, this.#env(), this.#limitMs, this.#closing.signal);
      this.#commands.set(command, running);
      // A failure may be a cancelled dialog: the next request asks again.
      running.catch(() => this.#commands.delete(command));
    }
    return running;
  }
}

function run(command: string, env: NodeJS.ProcessEnv, limitMs: number, closing: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", command], { env, stdio: ["ignore", "pipe", "ignore"], detached: true });
    const settle = () => {
      clearTimeout(timer);
      closing.removeEventListener("abort", onClose);
    };
    const fail = (why: string) => {
      settle();
      reject(new ProviderError(`The command "${command}" of models.yml ${why}`, "auth"));
    };
    const end = (why: string) => {
      if (child.pid !== undefined) endGroup(child.pid);
      fail(why);
    };
    const onClose = () => end("was ended with the daemon");
    let timer = setTimeout(() => end(`gave nothing within ${limitMs / 1000} s`), limitMs);
    closing.addEventListener("abort", onClose, { once: true });
    const chunks: Buffer[] = [];
    let size = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_OUTPUT_BYTES) end("printed more than any key");
      else chunks.push(chunk);
    });
    child.on("error", (error) => fail(`cannot run: ${error.message}`));
    const take = (code: number | null, signal: NodeJS.Signals | null) => {
      settle();
      child.stdout.destroy();
      const text = Buffer.concat(chunks).toString("utf8").trim();
      if (code !== 0) fail(signal ? `was ended by ${signal}` : `ended with code ${code}`);
      else if (text === "") fail("printed nothing");
      // A header holds one line; which of several is meant, only the user knows.
      else if (/[\r\n]/.test(text)) fail("printed more than one line: let it print the key alone");
      else resolve(text);
    };
    child.on("close", take);
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      timer = setTimeout(take, LAST_OUTPUT_MS, code, signal).unref();
    });
  });
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ended by itself in the meantime.
  }
}
