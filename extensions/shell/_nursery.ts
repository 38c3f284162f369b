// Starts shells without forking the daemon. A fork copies the page tables of the whole process: milliseconds in which the event loop
// stands still, more the larger the daemon has grown. A nursery is a small shell that was forked once and forks the others. Each of
// them gets a session of its own, one of the sockets the nursery was born with, which brings the command, and a pipe for the output:
// a socket, which is what Node gives its children for one, cannot be opened as /dev/stdout or /dev/stderr.
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, closeSync, constants, openSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";
import { z } from "mortise/extension";
import { MARKER } from "./_processes.ts";
import type { Terminal } from "./_pty.ts";

/** Shells that one nursery can start. */
const PLACES = 32;
/** How long a shell may take to get ready. */
const READY_MS = 2000;
/** Descriptor of the sockets: the first one is the nursery's own. */
const CONTROL = 3;
const FIRST = CONTROL + 1;
const LAST = CONTROL + PLACES;
/** Descriptor of the pipe in a shell that waits. */
const PIPE = LAST + 1;
/** How often it is looked whether the one who waits for a running shell has been killed. */
const LOOK_MS = 500;

/** A shell that a nursery has started. */
export interface Nursling {
  /** Undefined until the shell waits for its command. */
  readonly pid: number | undefined;
  /** The same to wait for; undefined when the shell could not be started in time. */
  readonly whenReady: Promise<number | undefined>;
  /** Brings the command. */
  readonly socket: Socket;
  /** What the shell writes when it has no terminal; undefined until it waits for its command. */
  readonly output: Socket | undefined;
  readonly exit: Promise<number>;
  readonly over: boolean;
  /** Keeps the process alive and watches the shell, or not. */
  hold(keep: boolean): void;
}

export interface NurseryRequest {
  bash: string;
  setsid: string;
  env: Readonly<Record<string, string>>;
  /** Descriptors that leak into the nursery and must not stay open there. */
  leaked: readonly number[];
}

export class Nursery {
  readonly #process: ChildProcess;
  readonly #control: Socket;
  readonly #places: (Socket | undefined)[];
  readonly #shells = new Map<number, Shell>();
  #held = 0;
  #rest = "";

  /** @throws {Error} when it cannot be started */
  constructor(request: NurseryRequest) {
    const { bash, env } = request;
    this.#process = spawn(bash, ["--norc", "--noprofile", "-c", script(request)], {
      cwd: "/",
      env,
      detached: true,
      stdio: ["ignore", "ignore", "ignore", ...Array<"pipe">(PLACES + 1).fill("pipe")],
    });
    this.#process.on("error", () => {});
    this.#process.unref();
    const sockets = this.#process.stdio.slice(CONTROL).map((stream) => z.instanceof(Socket).parse(stream));
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.pause();
      socket.unref();
    }
    [this.#control] = z
      .tuple([z.instanceof(Socket)])
      .rest(z.unknown())
      .parse(sockets);
    this.#places = sockets.slice(1);
    this.#control.setEncoding("utf8").on("data", (text: string) => this.#hear(text));
    this.#control.resume();
  }

  /** True while it can start one more shell. */
  get hasRoom(): boolean {
    return (
      this.#process.exitCode === null && this.#process.signalCode === null && this.#places.some((place) => place !== undefined)
    );
  }

  /** Starts a shell that waits for its command; call only while there is room. */
  start(cwd: string, marker: string, terminal: Terminal | undefined): Nursling {
    const index = this.#places.findIndex((place) => place !== undefined);
    const socket = this.#places[index];
    if (socket === undefined) throw new Error("The nursery is empty");
    this.#places[index] = undefined;
    const shell = new Shell(socket, terminal === undefined, (change) => this.#hold(change));
    this.#shells.set(FIRST + index, shell);
    this.#control.write(`${FIRST + index}\0${marker}\0${cwd}\0${terminal?.path ?? ""}\0`);
    // Without a further line the nursery ends; its shells do not.
    if (!this.hasRoom) this.#control.end();
    return shell;
  }

  /** Lets it start what was asked for, and then end. */
  retire(): void {
    for (const place of this.#places.splice(0)) place?.destroy();
    this.#control.end();
  }

  /** Ends it. Shells that wait see the end of their input; those that run go on. */
  close(): void {
    for (const place of this.#places.splice(0)) place?.destroy();
    this.#process.kill("SIGKILL");
  }

  #hold(change: 1 | -1): void {
    this.#held += change;
    if (this.#held > 0) this.#control.ref();
    else this.#control.unref();
  }

  /** `pid <descriptor> <pid>` when a shell is ready, `exit <descriptor> <code>` when it has ended. */
  #hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const [what, place, value] = line.split(" ");
      const shell = this.#shells.get(Number(place));
      if (what === "pid") shell?.ready(Number(value));
      else if (what === "exit") {
        shell?.ended(Number(value));
        this.#shells.delete(Number(place));
      }
    }
  }
}

class Shell implements Nursling {
  readonly socket: Socket;
  readonly exit: Promise<number>;
  readonly #piped: boolean;
  readonly #onHold: (change: 1 | -1) => void;
  readonly whenReady: Promise<number | undefined>;
  #resolve: (code: number) => void = () => {};
  #ready: (pid: number | undefined) => void = () => {};
  #pid: number | undefined;
  #output: Socket | undefined;
  #deadline: NodeJS.Timeout;
  #over = false;
  #watch: NodeJS.Timeout | undefined;
  /** The subshell that tells of the end. */
  #waiter: number | undefined;

  constructor(socket: Socket, piped: boolean, onHold: (change: 1 | -1) => void) {
    this.socket = socket;
    this.#piped = piped;
    this.#onHold = onHold;
    this.exit = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.whenReady = new Promise((resolve) => {
      this.#ready = resolve;
    });
    this.#deadline = setTimeout(() => this.ended(127), READY_MS);
    this.#deadline.unref();
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  get output(): Socket | undefined {
    return this.#output;
  }

  get over(): boolean {
    return this.#over;
  }

  ready(pid: number): void {
    if (this.#over) return;
    if (this.#piped) {
      this.#output = openPipe(pid, PIPE);
      // Another user's process, or no /proc: whoever waits starts a shell of its own.
      if (this.#output === undefined) return this.ended(127);
    }
    clearTimeout(this.#deadline);
    this.#pid = pid;
    this.#waiter = statusOf(pid)?.parent;
    this.#ready(pid);
  }

  ended(code: number): void {
    if (this.#over) return;
    this.hold(false);
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#ready(this.#pid);
    this.#resolve(code);
  }

  hold(keep: boolean): void {
    if (this.#over || keep === (this.#watch !== undefined)) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#onHold(keep ? 1 : -1);
    if (!keep) return;
    // `pkill -9 bash` ends the one who waits as well: nobody would tell of the end. It is believed at the second look, because what
    // was told before may not have been read yet.
    let wasGone = false;
    this.#watch = setInterval(() => {
      const gone = [this.#pid, this.#waiter].every((pid) => pid !== undefined && isGone(pid));
      if (gone && wasGone) this.ended(128 + 9);
      wasGone = gone;
    }, LOOK_MS);
    this.#watch.unref();
  }
}

/**
 * False in a worker thread: Node remembers there which descriptors were opened, is not told that the socket has closed one, and in
 * the end closes whatever has its number by then.
 */
export const hasPipes = isMainThread;

/** The reading end of the pipe that a waiting shell holds as `descriptor`; undefined when it cannot be opened. */
export function openPipe(pid: number, descriptor: number): Socket | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(`/proc/${pid}/fd/${descriptor}`, constants.O_RDONLY | constants.O_NONBLOCK);
    const output = new Socket({ fd, readable: true, writable: false });
    output.on("error", () => {});
    output.pause();
    return output;
  } catch {
    if (fd !== undefined) closeSync(fd);
    return undefined;
  }
}

/** True for a zombie as well: nobody may be there to take its end. */
function isGone(pid: number): boolean {
  const status = statusOf(pid);
  return status === undefined || status.state === "Z";
}

/** Undefined when there is no such process. */
function statusOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** The program that gives a shell its session, or undefined where shells must be started by the daemon itself. */
export function findSetsid(path = ""): string | undefined {
  if (process.platform !== "linux") return undefined;
  return ["/usr/bin", "/bin", ...path.split(":")].map((folder) => `${folder}/setsid`).find(isExecutable);
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * One subshell waits for each shell and reports its end. Job control, because without it background commands ignore INT, which the
 * shells would inherit; it is off in the subshell, where it would make the shell the leader of a group and setsid fork once more.
 * The pipe is that of an empty process substitution, opened for both directions; the shell opens it once more to write only, and
 * closes this descriptor when it has its command.
 */
function script({ bash, setsid, env, leaked }: NurseryRequest): string {
  const level = /^\d+$/.test(env["SHLVL"] ?? "") ? env["SHLVL"] : "0";
  const places = Array.from({ length: PLACES }, (_, index) => FIRST + index).join(" ");
  return `${leaked
    .filter((fd) => fd > LAST)
    .map((fd) => `exec ${fd}>&-; `)
    .join("")}
set -m
next() { IFS= read -r -d '' -u ${CONTROL} "$1"; }
while next place && next mark && next folder && next terminal; do
  (
    set +m
    trap : TERM HUP INT
    for other in ${places}; do test $other = $place || eval "exec $other>&-"; done
    code=127
    if cd -P -- "$folder"; then
      unset OLDPWD
      wait="echo pid $place \\$\\$ >&${CONTROL}; exec ${CONTROL}>&- 2>&1; IFS= read -r -d '' -u $place __mortise; exec $place>&- ${PIPE}>&-; eval \\"\\$__mortise\\""
      if test -n "$terminal"; then
        ${MARKER}=$mark SHLVL=${level} ${setsid} ${bash} --norc --noprofile -c "$wait" 1>"$terminal"
      else
        exec ${PIPE}<> <(:)
        ${MARKER}=$mark SHLVL=${level} ${setsid} ${bash} --norc --noprofile -c "$wait" 1>/proc/self/fd/${PIPE}
      fi
      code=$?
    fi
    eval "exec $place>&-"
    echo exit $place $code >&${CONTROL}
  ) &
  eval "exec $place>&-"
done
`;
}
