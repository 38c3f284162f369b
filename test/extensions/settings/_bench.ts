// The real kernel with chosen units and no transport: frames are collected, set-up code runs, contributions go live in one swap.
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type Context,
  defineService,
  type ExtensionDefinition,
  Launch,
  type Selection,
  type SettingDefinition,
  Settings,
} from "mortise/extension";
import { Conversation } from "../../../core/agent/conversation.ts";
import { type AnyDefinition, isExtension, type SetupScope } from "../../../core/kernel/definition.ts";
import { Kernel } from "../../../core/kernel/kernel.ts";
import type { Entry } from "../../../core/kernel/registry.ts";
import { type Origin, Scope } from "../../../core/kernel/scope.ts";
import { SessionLog } from "../../../core/session/log.ts";
import type { Frame } from "../../../protocol/frame.ts";

export type Unit = AnyDefinition | ExtensionDefinition | readonly (AnyDefinition | ExtensionDefinition)[];

export class Bench {
  readonly root: string;
  readonly home: string;
  readonly cwd: string;
  readonly frames: Frame[] = [];
  readonly logged: string[] = [];
  readonly kernel: Kernel;
  readonly ctx: Context;
  readonly #scopes: Scope[] = [];
  readonly #waiting = new Set<() => void>();
  #requests = 1;
  conversation: unknown;

  constructor(root: string) {
    this.root = root;
    this.home = join(root, "home");
    this.cwd = join(root, "project");
    const log = (message: string) => void this.logged.push(message);
    this.kernel = new Kernel({
      mode: "rpc",
      hasUI: true,
      sink: {
        send: (frame) => {
          this.frames.push(frame);
          for (const check of [...this.#waiting]) check();
        },
        sendText: (json) => {
          this.frames.push(JSON.parse(json));
          for (const check of [...this.#waiting]) check();
        },
      },
      log: { debug: log, info: log, warn: log, error: log },
      validateResults: true,
    });
    this.kernel.contextExtensions["setting"] = {
      value(this: Context, setting: SettingDefinition) {
        return this.tryUse(Settings)?.get(setting) ?? setting.default;
      },
    };
    const current = () => this.conversation;
    this.kernel.contextExtensions["conversation"] = {
      get(this: Context) {
        return this.locals.conversation ?? current();
      },
    };
    this.kernel.dispatcher.open();
    this.ctx = this.kernel.createContext(this.#scope("test", "builtin"));
  }

  static async make(files: Record<string, string> = {}): Promise<Bench> {
    const root = await realpath(await mkdtemp(join(tmpdir(), "mortise-")));
    const bench = new Bench(root);
    await mkdir(bench.home, { mode: 0o700 });
    await mkdir(bench.cwd);
    for (const [path, text] of Object.entries(files)) await bench.write(path, text);
    return bench;
  }

  /** Adds the launch values. */
  launch(options: Record<string, unknown> = {}, env: NodeJS.ProcessEnv = {}): this {
    const launch: Launch = { home: this.home, cwd: this.cwd, options, env };
    this.ctx.add(defineService(Launch, { create: () => launch }));
    return this;
  }

  /** Attaches a real conversation with a log in memory. */
  converse(selection: Partial<Selection> = {}): Conversation {
    const core = this.#scope("mortise", "builtin");
    const log = SessionLog.create({ cwd: this.cwd, sessionsDir: undefined });
    const conversation = new Conversation({
      env: {
        registry: this.kernel.registry,
        launch: {},
        context: (scope, change) => this.kernel.createContext(scope ?? core, change),
        sendFrame: (frame) => this.kernel.send(frame),
        congested: () => false,
        onDrain: () => () => {},
        reportError: (owner, event, error) => this.kernel.reportError({ owner, event, error }),
        now: () => Date.now(),
      },
      log,
      selection: { model: undefined, thinkingLevel: "off", ...selection },
    });
    conversation.setAttached(true);
    this.conversation = conversation;
    return conversation;
  }

  /** Sends a command and gives its response; frames sent meanwhile are in `frames`. */
  async request(type: string, params: Record<string, unknown> = {}): Promise<Frame> {
    const id = `q${this.#requests++}`;
    this.kernel.dispatcher.line(JSON.stringify({ id, type, ...params }));
    return this.frame("response", (frame) => frame["id"] === id);
  }

  /** Loads units as one batch; the returned function unloads them. */
  async load(
    units: readonly Unit[],
    origin: Origin = "builtin",
    id = `unit${this.#scopes.length}`,
  ): Promise<() => Promise<void>> {
    const scope = this.#scope(id, origin);
    const entries: Entry[] = [];
    const live: (() => unknown)[] = [];
    const sets = new Map<string, Entry[]>();
    let staged = true;
    const enter = (definitions: readonly AnyDefinition[]) => {
      const made = definitions.map((definition) => this.kernel.registry.entry(definition, scope));
      if (staged) entries.push(...made);
      else this.kernel.registry.swap({ add: made });
      return made;
    };
    const leave = (gone: readonly Entry[]) => {
      if (staged) for (const entry of gone) entries.splice(entries.indexOf(entry), 1);
      else this.kernel.registry.swap({ remove: gone });
    };
    const setup: SetupScope = {
      owner: id,
      signal: scope.signal,
      ctx: this.kernel.createContext(scope),
      add: (...definitions) => {
        const made = enter(definitions);
        return () => leave(made);
      },
      replace: (set, definitions) => {
        const before = sets.get(set) ?? [];
        if (staged) {
          leave(before);
          sets.set(set, enter(definitions));
          return;
        }
        const made = definitions.map((definition) => this.kernel.registry.entry(definition, scope));
        this.kernel.registry.swap({ remove: before, add: made });
        sets.set(set, made);
      },
      own: (undo, label) => scope.own(undo, label),
      hot: { data: undefined },
      onLive: (run) => void live.push(() => run("startup")),
      onRetire: () => {},
    };
    for (const unit of units.flat() as readonly (AnyDefinition | ExtensionDefinition)[]) {
      if (isExtension(unit)) {
        enter(unit.contributes);
        await unit.setup?.(setup);
      } else enter([unit as AnyDefinition]);
    }
    staged = false;
    this.kernel.registry.swap({ add: entries });
    scope.state = "active";
    for (const run of live) await run();
    return async () => {
      this.kernel.registry.swap({ remove: this.kernel.registry.ownedBy(scope) });
      await scope.dispose();
    };
  }

  #scope(id: string, origin: Origin): Scope {
    const scope = new Scope({ owner: { id, origin, order: this.#scopes.length }, generation: 1 });
    scope.state = "active";
    this.#scopes.push(scope);
    return scope;
  }

  /** Writes a file below the bench's root. */
  async write(path: string, text: string): Promise<string> {
    const file = join(this.root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  of(type: string): Frame[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  /** The first frame of a type, from `after` on, that fits. */
  async frame(type: string, fits: (frame: Frame) => boolean = () => true, after = 0): Promise<Frame> {
    for (;;) {
      const found = this.frames.slice(after).find((frame) => frame.type === type && fits(frame));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  async close(): Promise<void> {
    for (const scope of [...this.#scopes].reverse()) await scope.dispose();
    await rm(this.root, { recursive: true, force: true });
  }
}

/** Resolves with the paths of the next settings change. */
export function nextChange(settings: Settings): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const stop = settings.onChange((paths) => {
      stop();
      resolve(paths);
    });
  });
}
