// Logging to stderr through pino, which is loaded at the first line that is written: a quiet start pays nothing for it.
import type { Logger } from "./context.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
const SEVERITY: Record<LogLevel, number> = { debug: 20, info: 30, warn: 40, error: 50, silent: 100 };

export interface LogOptions {
  level: LogLevel;
  /** Takes one finished line, newline included. */
  write: (line: string) => void;
  /** Masks secrets in what is written. */
  redact?: (text: string) => string;
  /** Readable lines instead of JSON, for a terminal. */
  pretty?: boolean;
}

type Line = [level: Exclude<LogLevel, "silent">, message: string, fields: Record<string, unknown>];

/** A logger whose lines keep their order while pino loads. */
export function createLogger(options: LogOptions): Logger & { flush(): Promise<void> } {
  const threshold = SEVERITY[options.level];
  const waiting: Line[] = [];
  let sink: ((line: Line) => void) | undefined;
  let loading: Promise<void> | undefined;

  const load = async () => {
    const { pino } = await import("pino");
    const write = (text: string) => options.write(options.redact ? options.redact(text) : text);
    const logger = pino(
      { level: options.level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
      { write },
    );
    sink = options.pretty
      ? ([level, message, fields]) =>
          write(`${level} ${message}${Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ""}\n`)
      : ([level, message, fields]) => logger[level](fields, message);
    for (const line of waiting.splice(0)) sink(line);
  };

  const log =
    (level: Line[0]) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      if (SEVERITY[level] < threshold) return;
      if (sink) return sink([level, message, fields]);
      waiting.push([level, message, fields]);
      loading ??= load();
    };
  return {
    debug: log("debug"),
    info: log("info"),
    warn: log("warn"),
    error: log("error"),
    flush: async () => {
      await loading;
    },
  };
}
