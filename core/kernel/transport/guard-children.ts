// Children never get the protocol's stdin or stdout: what they would inherit as stdout is stderr, as stdin nothing.
// The default export is the object that everybody shares.
import childProcess from "node:child_process";
import type { Patches } from "./patches.ts";

type Callable = (...args: unknown[]) => unknown;

/** Patches the asynchronous spawn at its root and the three synchronous functions. */
export function guardChildProcesses(patches: Patches): void {
  const prototype = childProcess.ChildProcess.prototype as unknown as Record<string, unknown>;
  const spawn = prototype["spawn"] as Callable;
  // spawn, exec, execFile, fork and cluster all end here.
  patches.set(prototype, "spawn", function (this: unknown, options: unknown) {
    return Reflect.apply(spawn, this, [withSafeStdio(options)]);
  });
  const members = childProcess as unknown as Record<string, unknown>;
  for (const name of ["spawnSync", "execFileSync", "execSync"] as const) {
    const original = childProcess[name] as Callable;
    patches.set(members, name, (...args: unknown[]) => original(...args.map(withSafeStdio)));
  }
}

/** Options with `stdio` made safe; any other argument as it came. */
function withSafeStdio(options: unknown): unknown {
  if (typeof options !== "object" || options === null || Array.isArray(options) || !("stdio" in options)) return options;
  return { ...options, stdio: safeStdio(options.stdio) };
}

function safeStdio(stdio: unknown): unknown {
  if (stdio === "inherit") return ["ignore", 2, 2];
  return Array.isArray(stdio) ? stdio.map(safeSlot) : stdio;
}

function safeSlot(slot: unknown, index: number): unknown {
  const fd = descriptorOf(slot, index);
  if (fd === 0) return "ignore";
  return fd === 1 ? 2 : slot;
}

function descriptorOf(slot: unknown, index: number): unknown {
  if (slot === "inherit") return index;
  if (slot === process.stdin) return 0;
  if (slot === process.stdout) return 1;
  if (typeof slot !== "object" || slot === null) return slot;
  if ("fd" in slot && typeof slot.fd === "number") return slot.fd;
  const handle = "_handle" in slot ? slot._handle : undefined;
  return typeof handle === "object" && handle !== null && "fd" in handle ? handle.fd : undefined;
}
