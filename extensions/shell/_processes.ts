// Finds and ends every process a command started, those in sessions of their own included. A process belongs to a run when
// it stands in the shell's group or session, descends from the shell, or carries the run's marker in its environment.
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** Environment variable that names the run a process belongs to. */
export const MARKER = "MORTISE_RUN";

export interface ProcessInfo {
  pid: number;
  ppid: number;
  pgid: number;
  sid: number;
  /** Tells a process from a later one with the same pid; empty where the system does not say. */
  started: string;
}

const hasProc = process.platform === "linux";
const exec = promisify(execFile);

/** Processes of one run; `marker` may be a prefix that several runs share. Zombies are left out. */
export async function processTree(root: number | undefined, marker: string): Promise<ProcessInfo[]> {
  const { all, markerOf } = await scan();
  const known = new Set<number>();
  if (root !== undefined) {
    for (const info of all) if (info.pid === root || info.pgid === root || info.sid === root) known.add(info.pid);
    known.add(root);
  }
  for (const info of all) if (!known.has(info.pid) && (await markerOf(info.pid))?.startsWith(marker)) known.add(info.pid);
  for (let grown = true; grown; ) {
    grown = false;
    for (const info of all) {
      if (known.has(info.pid) || !known.has(info.ppid)) continue;
      known.add(info.pid);
      grown = true;
    }
  }
  known.delete(process.pid);
  return all.filter((info) => known.has(info.pid));
}

/** TERM to all of them, KILL to what is left after `graceMs`. Resolves when none is left, or after a bounded effort. */
export async function killTree(root: number | undefined, marker: string, graceMs: number): Promise<void> {
  let alive = await processTree(root, marker);
  if (root !== undefined) signalGroup(root, "SIGTERM");
  for (const info of alive) if (info.pgid !== root) signal(info, "SIGTERM");
  // A stopped process acts on TERM only when it goes on.
  if (root !== undefined) signalGroup(root, "SIGCONT");
  const deadline = Date.now() + graceMs;
  while (alive.length > 0 && Date.now() < deadline) {
    await delay(20);
    alive = await stillAlive(alive);
  }
  for (let round = 0; round < 20; round++) {
    // Scanned again: a process may have forked while it was told to end.
    const fresh = await processTree(alive.length > 0 ? root : undefined, marker);
    alive = await stillAlive([...new Map([...alive, ...fresh].map((info) => [info.pid, info])).values()]);
    if (alive.length === 0) return;
    for (const info of alive) signal(info, "SIGKILL");
    await delay(10 + round * 5);
  }
}

/** True while a process of the group exists, zombies included. */
export function groupExists(pgid: number): boolean {
  try {
    process.kill(-pgid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Command line of a process, shortened; empty when it is gone. */
export async function commandLine(pid: number): Promise<string> {
  try {
    const text = hasProc
      ? (await readFile(`/proc/${pid}/cmdline`, "utf8")).replaceAll("\0", " ")
      : (await exec("ps", ["-o", "command=", "-p", String(pid)])).stdout;
    const line = text.replace(/[\x00-\x1f\x7f-\x9f]+/g, " ").trim();
    // A subshell shows the line our own shell was started with.
    if (line.includes("__mortise")) return "bash";
    return line.length > 80 ? `${line.slice(0, 79)}…` : line;
  } catch {
    return "";
  }
}

async function stillAlive(list: readonly ProcessInfo[]): Promise<ProcessInfo[]> {
  const alive: ProcessInfo[] = [];
  for (const info of list) {
    const now = hasProc ? await readStat(info.pid) : isAlive(info.pid) ? info : undefined;
    if (now !== undefined && now.started === info.started) alive.push(info);
  }
  return alive;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function signal(info: ProcessInfo, name: NodeJS.Signals): void {
  try {
    process.kill(info.pid, name);
  } catch {
    // Gone meanwhile, or another user's: nothing can be done.
  }
}

function signalGroup(pgid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pgid, name);
  } catch {
    // The group is gone.
  }
}

async function listProcesses(): Promise<ProcessInfo[]> {
  if (!hasProc) return listWithPs();
  const found: ProcessInfo[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const info = await readStat(Number(name));
    if (info !== undefined) found.push(info);
  }
  return found;
}

async function readStat(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, "utf8");
    // pid (command, may hold anything) state ppid pgrp session … starttime is field 22
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return {
      pid,
      ppid: Number(fields[1]),
      pgid: Number(fields[2]),
      sid: Number(fields[3]),
      started: fields[19] ?? "",
    };
  } catch {
    return undefined;
  }
}

/** A look at all processes of the machine. */
interface Scan {
  all: readonly ProcessInfo[];
  /** The run that a process carries in its environment; read when first asked for. */
  markerOf(pid: number): Promise<string | undefined>;
}

let lastScan: Promise<unknown> = Promise.resolve();
let nextScan: Promise<Scan> | undefined;

/**
 * A look that begins after the call. Calls that wait for it share it: many commands that end at once would otherwise each read
 * every process of the machine, time and again. Only work in flight is kept here, so nothing is lost at a reload.
 */
function scan(): Promise<Scan> {
  nextScan ??= lastScan.then(() => {
    nextScan = undefined;
    const taken = takeScan();
    lastScan = taken.catch(() => {});
    return taken;
  });
  return nextScan;
}

async function takeScan(): Promise<Scan> {
  const markers = new Map<number, Promise<string | undefined>>();
  const markerOf = (pid: number) => {
    const known = markers.get(pid);
    if (known !== undefined) return known;
    const read = readMarker(pid);
    markers.set(pid, read);
    return read;
  };
  return { all: await listProcesses(), markerOf };
}

async function readMarker(pid: number): Promise<string | undefined> {
  if (!hasProc) return undefined;
  try {
    const environment = await readFile(`/proc/${pid}/environ`, "latin1");
    return environment
      .split("\0")
      .find((entry) => entry.startsWith(`${MARKER}=`))
      ?.slice(MARKER.length + 1);
  } catch {
    return undefined;
  }
}

async function listWithPs(): Promise<ProcessInfo[]> {
  const { stdout } = await exec("ps", ["-Ao", "pid=,ppid=,pgid=,stat="]);
  const found: ProcessInfo[] = [];
  for (const line of stdout.split("\n")) {
    const [pid, ppid, pgid, state] = line.trim().split(/\s+/);
    if (pid === undefined || state === undefined || state.startsWith("Z")) continue;
    found.push({ pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid), sid: 0, started: "" });
  }
  return found;
}
