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
  /** Takes every line from `info` on, whatever `level` says; for the log file. */
  archive?: (line: string) => void;
  /** Readable lines instead of JSON, for a terminal. */
  pretty?: boolean;
}

type Line = [level: Exclude<LogLevel, "silent">, message: string, fields: Record<string, unknown>];

/** A logger whose lines keep their order while pino loads. */
export function createLogger(options: LogOptions): Logger & { flush(): Promise<void> } {
  const shown = SEVERITY[options.level];
  const threshold = options.archive === undefined ? shown : Math.min(shown, SEVERITY.info);
  const waiting: Line[] = [];
  let sink: ((line: Line) => void) | undefined;
  let loading: Promise<void> | undefined;

  const load = async () => {
    sink = await openSink(options);
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

async function openSink(options: LogOptions): Promise<(line: Line) => void> {
  const { pino } = await import("pino");
  const redact = options.redact ?? ((text: string) => text);
  const format = { base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime };
  const shown = pino({ level: options.level, ...format }, { write: (text: string) => options.write(redact(text)) });
  const { archive } = options;
  const archived = archive && pino({ level: "info", ...format }, { write: (text: string) => archive(redact(text)) });
  return ([level, message, fields]) => {
    archived?.[level](fields, message);
    if (!options.pretty) shown[level](fields, message);
    else if (SEVERITY[level] >= SEVERITY[options.level]) options.write(redact(readable(level, message, fields)));
  };
}

function readable(level: string, message: string, fields: Record<string, unknown>): string {
  const rest = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
  return `${level} ${message}${rest}\n`;
}
