// A minimal client of a headless Chromium over its debugging pipe: frames are JSON texts that end in NUL.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

/** Undefined when there is none on this machine. */
export const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) =>
  existsSync(path),
);

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { message: string };
  sessionId?: string;
}

export class Chromium {
  readonly profile = mkdtempSync(join(tmpdir(), "mortise-chromium-"));
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (result: Record<string, unknown>) => void; reject: (error: Error) => void }>();
  readonly #listeners = new Set<(message: Message) => void>();
  #rest = "";
  #ids = 0;

  constructor(path: string) {
    const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"];
    // Tests click faster than people, and on more.
    args.push("--disable-ipc-flooding-protection");
    this.#child = spawn(path, [...args, `--user-data-dir=${this.profile}`, "--no-first-run", "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    const output = this.#child.stdio[4] as Readable;
    output.setEncoding("utf8");
    output.on("data", (chunk: string) => this.#read(chunk));
    this.#child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("The browser ended"));
      this.#waiting.clear();
    });
  }

  send(method: string, params: Record<string, unknown> = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#ids;
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  on(listener: (message: Message) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The first event of that name from now on. */
  event(method: string, fits: (params: Record<string, unknown>) => boolean = () => true): Promise<Record<string, unknown>> {
    return new Promise((resolve) => {
      const stop = this.on((message) => {
        if (message.method !== method || !fits(message.params ?? {})) return;
        stop();
        resolve(message.params ?? {});
      });
    });
  }

  async page(): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    return new Page(this, String(sessionId));
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      // In order, so that its helpers end before the profile is removed.
      this.send("Browser.close").catch(() => {});
      const limit = setTimeout(() => this.#child.kill("SIGKILL"), 5000);
      await ended;
      clearTimeout(limit);
    }
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 20 });
  }

  #read(chunk: string): void {
    const parts = (this.#rest + chunk).split("\0");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) {
      const message = JSON.parse(part) as Message;
      const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id);
      if (message.id !== undefined) this.#waiting.delete(message.id);
      if (message.error !== undefined) waiting?.reject(new Error(message.error.message));
      else waiting?.resolve(message.result ?? {});
      if (message.method !== undefined) for (const listener of [...this.#listeners]) listener(message);
    }
  }
}

export class Page {
  readonly browser: Chromium;
  readonly #session: string;
  /** URLs asked for since the page was made. */
  readonly requests: string[] = [];
  /** Messages of the console and exceptions. */
  readonly problems: string[] = [];

  constructor(browser: Chromium, session: string) {
    this.browser = browser;
    this.#session = session;
    browser.on(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === "Network.requestWillBeSent")
        this.requests.push(String((params?.["request"] as { url?: string } | undefined)?.url));
      if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") this.problems.push(JSON.stringify(params));
    });
  }

  send(method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    return this.browser.send(method, params, this.#session);
  }

  /** Opens a file; `inject` runs before anything of the page. */
  async open(file: string, options: { inject?: string; bypassPolicy?: boolean; hash?: string } = {}): Promise<void> {
    for (const domain of ["Page", "Network", "Runtime", "Log"]) await this.send(`${domain}.enable`);
    if (options.bypassPolicy === true) await this.send("Page.setBypassCSP", { enabled: true });
    if (options.inject !== undefined) await this.send("Page.addScriptToEvaluateOnNewDocument", { source: options.inject });
    const loaded = this.browser.event("Page.loadEventFired");
    await this.send("Page.navigate", { url: `${pathToFileURL(file).href}${options.hash ?? ""}` });
    await loaded;
  }

  /** The value of an expression; promises are awaited. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = (await this.send("Runtime.evaluate", {
      expression,
      returnByValue: true,
      awaitPromise: true,
      userGesture: true,
    })) as { result: { value: T }; exceptionDetails?: { exception?: { description?: string } } };
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? "The page threw");
    return result.value;
  }

  async screenshot(options: { width: number; height: number; dark?: boolean }): Promise<Buffer> {
    await this.send("Emulation.setDeviceMetricsOverride", {
      width: options.width,
      height: options.height,
      deviceScaleFactor: 1,
      mobile: false,
    });
    const value = options.dark === true ? "dark" : "light";
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(String(data), "base64");
  }
}
