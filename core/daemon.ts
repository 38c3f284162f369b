// The composition root: kernel, loader, conversations and the services that come from the process, put together. Knows no
// feature by name; `process.ts` gives it pipes, `testing.ts` gives it arrays.
import { join } from "node:path";
import type { Frame } from "../protocol/frame.ts";
import { ConversationTable } from "./agent/conversations.ts";
import type { AgentEnvironment } from "./agent/environment.ts";
import { agentFrames } from "./agent/events.ts";
import { dialogWithheld, sessionSwitched } from "./agent/hook-points.ts";
import { withoutSecrets } from "./agent/secrets.ts";
import type { SettingDefinition } from "./agent/settings.ts";
import { authorStack } from "./author-stack.ts";
import { configuredRoots, extensionRoots, PACKAGE_ROOT, projectRoot } from "./extension-roots.ts";
import { coreFrames } from "./frames.ts";
import { createHostContributions } from "./host-contributions.ts";
import { createIsolation } from "./isolate.ts";
import { currentCall } from "./kernel/attribution.ts";
import type { Context, Logger } from "./kernel/context.ts";
import type { AnyDefinition } from "./kernel/definition.ts";
import { type FrameSink, Kernel } from "./kernel/kernel.ts";
import { Scope } from "./kernel/scope.ts";
import { defineService } from "./kernel/services.ts";
import { discover } from "./loader/discover.ts";
import type { BuiltinUnit } from "./loader/host.ts";
import { Loader } from "./loader/loader.ts";
import type { Options } from "./options.ts";
import { Conversations } from "./services/agent.ts";
import { dialectOf, virtualModulesOf } from "./services/dialects.ts";
import { EventFilter } from "./services/event-filter.ts";
import { Extensions } from "./services/extensions.ts";
import { Framing } from "./services/framing.ts";
import { HostContributions } from "./services/host-contributions.ts";
import { Launch } from "./services/launch.ts";
import { Credentials } from "./services/models.ts";
import { Settings } from "./services/settings.ts";
import { SlashCommands } from "./services/slash.ts";
import { ProjectCode, Trust } from "./services/trust.ts";
import { storedSession } from "./stored-session.ts";
import { ProjectTrust } from "./trust.ts";
import { createProjectCode } from "./trust-question.ts";
import { createExtensions, startReport } from "./unit-listing.ts";

/** Where frames go, with what the agent needs to know of a slow reader. */
export interface DaemonSink extends FrameSink {
  congested(): boolean;
  onDrain(listener: () => void): () => void;
  version(): 1 | 2;
  negotiate(): void;
}

export interface DaemonOptions {
  options: Options;
  /** `MORTISE_HOME`, absolute. */
  home: string;
  env: NodeJS.ProcessEnv;
  log: Logger;
  sink: DaemonSink;
  builtins: readonly BuiltinUnit[];
  /** Follow changes of extension files. */
  watch: boolean;
  /** Check command results against their schemas; for tests. */
  validateResults?: boolean;
  /** Also load what lies in the package's own `extensions/` beside the built-ins (DESIGN §2 "Extension folders"). */
  packageExtensions: boolean;
  onShutdownRequest(): void;
}

/** Milliseconds one command that was read before the end of input may take to answer. */
const SETTLE_LIMIT_MS = 2_000;
/** How long the end of input waits for the start: loading is bounded by itself, this bounds it together. */
const START_LIMIT_MS = 12_000;
/** 000_…, "Background conversations": what still runs then is stopped. */
const BACKGROUND_GRACE_MS = 5_000;
const DEV_PATIENCE_MS = 120_000;

export class Daemon {
  readonly kernel: Kernel;
  readonly loader: Loader;
  readonly conversations: ConversationTable;
  readonly log: Logger;
  readonly #options: DaemonOptions;
  readonly #core: Scope;
  readonly #trust: ProjectTrust;
  readonly #sessionsDir: string | undefined;
  #wantedEvents: ReadonlySet<string> | undefined;
  #starting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #timeline: [step: string, ms: number][] = [];

  constructor(options: DaemonOptions) {
    const { options: cli, home } = options;
    this.#options = options;
    this.log = options.log;
    this.#sessionsDir = cli.noSession ? undefined : (cli.sessionDir ?? join(home, "sessions"));
    this.#trust = new ProjectTrust({
      file: join(home, "trust.json"),
      always: cli.trust ? cli.cwd : undefined,
      warn: (message) => this.notice("warning", message),
    });
    this.kernel = new Kernel({
      mode: cli.mode,
      hasUI: !cli.noUi,
      sink: options.sink,
      log: options.log,
      validateResults: options.validateResults ?? false,
      redact: (text) => this.redact(text),
      authorStack,
      onShutdownRequest: options.onShutdownRequest,
      onQuarantine: (owner, reason, generation) => this.loader.quarantine(owner, reason, generation),
    });
    this.#core = new Scope({ owner: { id: "mortise", origin: "builtin", order: -1 }, generation: 1 });
    this.#core.state = "active";
    this.conversations = new ConversationTable({
      env: this.#agentEnvironment(),
      cwd: cli.cwd,
      sessionsDir: () => this.#sessionsDir,
    });
    this.#extendContexts();
    this.loader = this.#createLoader();
    this.#registerCore();
  }

  /** Loads everything and opens the lane. @throws {CommandError} when a named session or `--config` file cannot be used. */
  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const began = performance.now();
    const mark = (step: string) => this.#timeline.push([step, performance.now() - began]);
    // Built-ins are live before the first await; with --dev they come from their sources and take a moment.
    const loading = this.loader.start();
    await (this.#options.options.dev ? loading : this.loader.builtinsLive);
    mark("built-ins");
    const fatal = this.kernel.services.tryUse(Settings)?.fatal;
    if (fatal !== undefined) throw fatal;
    await this.#openSession();
    mark("session");
    await loading;
    const configured = this.kernel.services.tryUse(Settings)?.getPath("extensions");
    for (const root of configuredRoots(configured, this.#options)) await this.loader.addRoot(root);
    mark("extensions");
    if (this.#options.options.printExtensions) process.stderr.write(startReport(this.#timeline, this.loader.units()));
    const { attached } = this.conversations;
    const ctx = this.kernel.createContext(this.#core, { locals: { conversation: attached } });
    await ctx.hook(sessionSwitched, { conversation: attached, reason: "startup", previousFile: undefined });
    try {
      this.kernel.services.tryUse(SlashCommands)?.announce(true);
    } catch (error) {
      // A listing that cannot be made is no reason to be without the rest.
      this.kernel.reportError({ owner: "mortise", event: "available_commands_update", error });
    }
    this.kernel.dispatcher.open();
  }

  /** Ends everything in the order of DESIGN §9 "End of input". Idempotent. */
  close(input: "ended" | "open"): Promise<void> {
    this.#closing ??= this.#close(input);
    return this.#closing;
  }

  async #close(input: "ended" | "open"): Promise<void> {
    // Commands that were read while everything was being loaded are answered as well.
    await untilSettled(this.#starting, input === "ended" ? START_LIMIT_MS : SETTLE_LIMIT_MS);
    this.kernel.endInput();
    const attached = this.conversations.hasAttached ? this.conversations.attached : undefined;
    const aborted = attached?.abort(input === "ended" ? "The host closed stdin" : "The daemon is shutting down", {
      resume: false,
    });
    await this.kernel.dispatcher.whenSettled(SETTLE_LIMIT_MS);
    await aborted;
    await this.#graceForBackground();
    // While their conversation is still there: the last words of extensions.
    await this.loader.announceShutdown();
    this.kernel.mute("available_commands_update");
    await this.conversations.closeAll();
    await this.loader.stop();
    await this.#core.dispose();
  }

  async #graceForBackground(): Promise<void> {
    const running = this.conversations.list().filter((conversation) => !conversation.isAttached && conversation.isStreaming);
    if (running.length === 0) return;
    await untilSettled(Promise.all(running.map((conversation) => conversation.whenIdle())), BACKGROUND_GRACE_MS);
  }

  notice(level: "info" | "warning" | "error", message: string): void {
    this.kernel.send({ type: "notice", level, message, source: "mortise" });
  }

  /** Masks every known secret. */
  redact(text: string): string {
    return withoutSecrets(text, this.#secrets());
  }

  #secrets(): readonly string[] {
    const key = this.#options.options.apiKey;
    try {
      const stored = this.kernel.services.tryUse(Credentials)?.secrets() ?? [];
      return key === undefined ? stored : [...stored, key];
    } catch {
      return key === undefined ? [] : [key];
    }
  }

  #agentEnvironment(): AgentEnvironment {
    const { sink, options: cli } = this.#options;
    return {
      registry: this.kernel.registry,
      // --system-prompt and --append-system-prompt are sections of extensions/prompt: they may name files.
      launch: { tools: cli.tools },
      context: (scope, change) => this.kernel.createContext(scope ?? this.#core, change),
      sendFrame: (frame) => this.kernel.send(frame),
      wants: (type) => this.#wantedEvents?.has(type) !== false,
      congested: () => sink.congested(),
      onDrain: (listener) => sink.onDrain(listener),
      reportError: (owner, event, error) => this.kernel.reportError({ owner, event, error }),
      now: () => Date.now(),
    };
  }

  /** Adds `ctx.conversation` and `ctx.setting`. */
  #extendContexts(): void {
    const { conversations, kernel } = this;
    kernel.contextExtensions["conversation"] = {
      get(this: Context) {
        return this.locals.conversation ?? currentCall()?.locals.conversation ?? conversations.attached;
      },
    };
    kernel.contextExtensions["setting"] = {
      value: <T>(setting: SettingDefinition<T>): T => kernel.services.tryUse(Settings)?.get(setting) ?? setting.default,
    };
    kernel.uiGate = (ctx) => {
      const { conversation } = ctx.locals;
      // What belongs to no conversation, or outlived its own, is the process's.
      if (conversation === undefined || conversations.rootOf(conversation).signal.aborted) return undefined;
      return {
        signal: conversations.shown(conversation),
        withheld: (method, params) => {
          const input = { conversation, method, params };
          void kernel.createContext(this.#core, { locals: { conversation } }).hook(dialogWithheld, input);
        },
      };
    };
    kernel.hookFilter = (definition, ctx) => {
      if (definition.attachedOnly !== true) return true;
      return ctx.locals.conversation?.isAttached !== false;
    };
  }

  #createLoader(): Loader {
    const { kernel } = this;
    return new Loader(
      {
        registry: kernel.registry,
        log: this.log,
        createContext: (scope) => kernel.createContext(scope),
        runAs: (scope, fn) => kernel.runAs(scope, fn),
        reportError: (report) => kernel.reportError(report),
      },
      {
        builtins: this.#options.builtins,
        roots: extensionRoots({ ...this.#options, isTrusted: (dir) => this.#trust.isTrusted(dir) }),
        virtualModules: () => this.#virtualModules(),
        adaptFactory: (factory, info) => dialectOf(this.#dialects(), info).adapt((api) => factory(api) as unknown, info),
        isolate: createIsolation({
          kernel,
          home: this.#options.home,
          env: this.#options.env,
          cwd: this.#options.options.cwd,
          settingsReady: () => this.loader.builtinsLive,
          conversation: (id) => this.conversations.get(id),
        }),
        cacheDir: join(this.#options.home, "cache"),
        dev: this.#options.options.dev,
        // From sources every built-in is transformed first; without all of them there is no daemon to speak of.
        patienceMs: this.#options.options.dev ? DEV_PATIENCE_MS : undefined,
        sourceRoot: PACKAGE_ROOT,
        watch: this.#options.watch,
        mayRead: (path) => !this.#trust.isHeld(path),
        isGate: (point) => point === "toolDecide" || point === "toolSeal",
      },
    );
  }

  #dialects() {
    return this.kernel.registry.list("dialect").map((entry) => entry.definition);
  }

  async #virtualModules(): Promise<Record<string, unknown>> {
    const modules: Record<string, unknown> = {
      "mortise/extension": () => import("./extension.ts"),
      "mortise/protocol": () => import("../protocol/protocol.ts"),
      mortise: () => import("../protocol/index.ts"),
      zod: () => import("zod"),
      "zod/v4": () => import("zod"),
    };
    for (const [specifier, load] of virtualModulesOf(this.#dialects(), this.kernel.createContext(this.#core)))
      modules[specifier] ??= load;
    return modules;
  }

  /** Services that come from the process, and the frames no extension owns. */
  #registerCore(): void {
    const { sink, options: cli, home, env } = this.#options;
    const launch = { home, cwd: cli.cwd, sessionsDir: this.#sessionsDir, options: { ...cli }, env };
    const trust = this.#trust;
    trust.onChange(() => {
      if (!trust.isTrusted(cli.cwd)) void this.loader.removeRoot(projectRoot(cli.cwd).path);
      else if (!cli.noExtensions) void this.loader.addRoot(projectRoot(cli.cwd)).then(() => this.loader.retryHeld());
    });
    this.loader.onActivated(({ unitId, scope }) => {
      if (scope.owner.origin !== "project") return;
      const unit = this.loader.units().find((each) => each.id === unitId);
      trust.cover(cli.cwd, unit?.files ?? []);
    });
    const projectCode = createProjectCode({
      trust,
      dir: cli.cwd,
      requests: this.kernel.requests,
      isPartOfUnit: (path) => this.loader.concerns(path, "project"),
    });
    const definitions: AnyDefinition[] = [
      ...(coreFrames as AnyDefinition[]),
      ...(agentFrames as unknown as AnyDefinition[]),
      defineService(Launch, { create: () => launch }),
      defineService(Framing, {
        create: () => ({
          get version() {
            return sink.version();
          },
          negotiate: () => sink.negotiate(),
        }),
      }),
      defineService(EventFilter, {
        create: () => ({
          set: (events) => {
            this.#wantedEvents = events === null ? undefined : new Set(events);
          },
        }),
      }),
      defineService(HostContributions, { create: () => createHostContributions(this.kernel.registry) }),
      defineService(Conversations, { create: () => this.conversations }),
      // What extensions get says what is trusted; nothing of it says yes.
      defineService(Trust, {
        create: () => ({
          isTrusted: (dir, file) => trust.isTrusted(dir, file),
          onChange: (listener) => trust.onChange(listener),
        }),
      }),
      defineService(ProjectCode, { create: () => projectCode }),
      defineService(Extensions, {
        create: () =>
          createExtensions({
            loader: this.loader,
            kernel: this.kernel,
            // Units of the project that nobody said yes to: their names are read, their code is not.
            untrusted: () => (cli.noExtensions || trust.isTrusted(cli.cwd) ? [] : discover(projectRoot(cli.cwd))),
          }),
      }),
    ];
    this.kernel.registry.swap({ add: definitions.map((definition) => this.kernel.registry.entry(definition, this.#core)) });
  }

  async #openSession(): Promise<void> {
    const { options: cli, home } = this.#options;
    const stored = await storedSession(cli, {
      sessionsDir: this.#sessionsDir ?? join(home, "sessions"),
      open: (file) => this.conversations.open(file),
      warn: (message) => this.notice("warning", message),
    });
    const conversation = stored ?? this.conversations.create();
    this.conversations.attach(conversation);
    if (cli.name !== undefined) conversation.log.setName(cli.name, "user");
  }
}

/** Resolves when `work` has ended in any way, at the latest after `limitMs`. */
async function untilSettled(work: Promise<unknown> | undefined, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([Promise.resolve(work).catch(() => {}), limit]);
  clearTimeout(timer);
}

export type { Frame };
