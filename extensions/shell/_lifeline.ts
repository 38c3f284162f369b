// Ends what commands left behind when the daemon itself was ended by force (kill -9, no memory left) and could not tidy up.
import { type ChildProcess, spawn } from "node:child_process";
import { MARKER } from "./_processes.ts";

/**
 * The watcher: waits for the end of its input, which comes with the end of the daemon however that ends. Then everything that
 * carries the mark gets HUP, TERM after half a second and KILL after two; so do the groups such processes lead, for children that
 * have cleared their environment. Where there is no /proc the groups are those of the last line of input.
 */
const SCRIPT = `
exec 2>/dev/null
trap '' HUP INT QUIT TERM
groups=
while read -r line; do groups=$line; done
marked() {
  test -r /proc/self/environ || return 0
  for file in $(grep -lszF -e "$1" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    echo "\${file%/*}"
  done
}
send() {
  found=$(marked "$1")
  groups="$groups $found"
  for pid in $found; do kill -s "$2" "$pid"; done
  for group in $groups; do kill -s "$2" -- "-$group"; done
}
left() {
  test -n "$(marked "$1")" && return 0
  for group in $groups; do kill -s 0 -- "-$group" && return 0; done
  return 1
}
settle() {
  rounds=0
  while test $rounds -lt "$2" && left "$1"; do sleep 0.1; rounds=$((rounds + 1)); done
}
send "$1" HUP
send "$1" CONT
settle "$1" 5
send "$1" TERM
settle "$1" 15
for round in 1 2 3; do
  left "$1" || exit 0
  send "$1" KILL
  sleep 0.1
done
`;

/** The watcher over the commands of one shell service. There is none before the first command. */
export class Lifeline {
  readonly #mark: string;
  readonly #byGroups: boolean;
  readonly #groups = new Set<number>();
  #watcher: ChildProcess | undefined;
  #closed = false;

  /** `prefix` is what the marks of all commands begin with; `byGroups` for systems that do not show the environment of processes. */
  constructor(prefix: string, byGroups = process.platform !== "linux") {
    this.#mark = `${MARKER}=${prefix}`;
    this.#byGroups = byGroups;
  }

  /** Call once a command has started, so that it does not wait for this. `group` is its process group. */
  hold(group: number): void {
    if (this.#closed) return;
    const watcher = this.#watcher;
    if (watcher === undefined || watcher.exitCode !== null || watcher.signalCode !== null) this.#start();
    this.#groups.add(group);
    this.#tell();
  }

  /** The group has no process any more. */
  drop(group: number): void {
    if (this.#groups.delete(group)) this.#tell();
  }

  /** The daemon ends its commands itself. */
  close(): void {
    this.#closed = true;
    this.#watcher?.kill("SIGKILL");
    this.#watcher = undefined;
  }

  #start(): void {
    const watcher = spawn("/bin/sh", ["-c", SCRIPT, "mortise-lifeline", this.#mark], {
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
      // A signal to the daemon's group is none to it.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    // Without it commands work all the same.
    watcher.on("error", () => {});
    watcher.stdin?.on("error", () => {});
    watcher.unref();
    if (watcher.stdin !== null && "unref" in watcher.stdin && typeof watcher.stdin.unref === "function") watcher.stdin.unref();
    this.#watcher = watcher;
  }

  /** Costs a write for each command, so only where it is needed. */
  #tell(): void {
    if (this.#byGroups) this.#watcher?.stdin?.write(`${[...this.#groups].join(" ")}\n`);
  }
}
