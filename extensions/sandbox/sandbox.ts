// Commands of the model inside bubblewrap: the file system read-only except where the mode allows writing, processes and, unless
// allowed, the network apart. What the system cannot do is a refusal that says what is missing.
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { defineService, Launch, Sandbox, type SandboxMode, ToolError, ToolsSandboxNetwork } from "mortise/extension";

const exec = promisify(execFile);

/** Written in the project, run by others outside of the sandbox: stays read-only. */
const RUNS_ELSEWHERE = [".mortise", ".git/hooks", ".git/config"];

export default defineService(Sandbox, {
  create(service) {
    /** What was found out about the system; a refusal is tried again, so that installing it helps at once. */
    let works: string | undefined;
    return {
      async wrap(mode, ctx) {
        const program = findProgram(mode, service.tryUse(Launch)?.env["PATH"] ?? process.env["PATH"]);
        const network = ctx.setting(ToolsSandboxNetwork);
        const args = argumentsFor({ mode, network, cwd: realpathSync(ctx.conversation.cwd), home: service.tryUse(Launch)?.home });
        if (works !== program) {
          await probe(program, args, mode);
          works = program;
        }
        return [program, ...args];
      },
    };
  },
});

function findProgram(mode: SandboxMode, path = ""): string {
  const isProgram = (file: string) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  const found = path
    .split(delimiter)
    .filter((folder) => folder.startsWith("/"))
    .map((folder) => join(folder, "bwrap"))
    .find(isProgram);
  if (found !== undefined && process.platform === "linux") return found;
  const missing =
    process.platform === "linux"
      ? "bubblewrap (bwrap) was not found in PATH; install it (package bubblewrap)"
      : "there is a sandbox on Linux only";
  throw refusal(mode, missing);
}

/** Namespaces may be forbidden (containers, hardened kernels); better said once than by every command's strange failure. */
async function probe(program: string, args: readonly string[], mode: SandboxMode): Promise<void> {
  try {
    await exec(program, [...args, "/bin/true"], { timeout: 10_000 });
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim().split("\n")[0] : undefined;
    throw refusal(mode, `bubblewrap does not work here (${said || String(error)}); does the system allow user namespaces?`);
  }
}

interface Place {
  mode: SandboxMode;
  network: boolean;
  cwd: string;
  /** MORTISE_HOME: holds keys. */
  home: string | undefined;
}

function argumentsFor({ mode, network, cwd, home }: Place): string[] {
  const writable = mode === "workspace-write";
  const kept = RUNS_ELSEWHERE.map((name) => join(cwd, name)).filter((path) => existsSync(path));
  const keys = home === undefined ? undefined : join(home, "auth.json");
  return [
    // The parent may not outlive the daemon; the own process namespace takes every child with it.
    "--die-with-parent",
    "--unshare-pid",
    "--unshare-ipc",
    ...(network ? [] : ["--unshare-net"]),
    ...["--ro-bind", "/", "/"],
    ...["--dev", "/dev"],
    ...["--proc", "/proc"],
    // Scratch space of its own, gone with the command. The project is put back when it lies in there.
    ...["--tmpfs", "/tmp"],
    ...[writable ? "--bind" : "--ro-bind", cwd, cwd],
    ...(writable ? kept.flatMap((path) => ["--ro-bind", path, path]) : []),
    ...(keys !== undefined && existsSync(keys) ? ["--ro-bind", "/dev/null", keys] : []),
    "--",
  ];
}

function refusal(mode: SandboxMode, missing: string): ToolError {
  return new ToolError(`Cannot run the command: tools.sandbox is ${mode}, but ${missing}, or set tools.sandbox to off`);
}
