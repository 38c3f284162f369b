// A working tree of its own for a subagent: a git worktree with the parent's uncommitted work in it. When the subagent is done,
// what it changed goes back as a patch or as a commit; what cannot be brought back is kept and named.
import { execFile } from "node:child_process";
import { copyFile, lstat, mkdir, mkdtemp, readlink, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import {
  AgentIsolationCommits,
  AgentIsolationMerge,
  type Context,
  createToken,
  errorMessage,
  sideRequest,
  ToolError,
} from "mortise/extension";

/** What a diff may weigh. */
const MAX_OUTPUT = 256 * 1024 * 1024;
/** git's own identity, so that no commit fails for want of one. */
const IDENTITY = ["-c", "user.name=mortise", "-c", "user.email=mortise@localhost", "-c", "commit.gpgsign=false"];

export interface CloseOptions {
  readonly ctx: Context;
  /** False keeps the changes as a patch without applying them. */
  readonly merge: boolean;
  /** Becomes the first line of the commit. */
  readonly title: string;
  /** Keeps a patch; returns the path of its file. */
  keep(patch: Buffer): string;
}

export interface Closed {
  patchPath?: string;
  branchName?: string;
  /** For the agent that gets the result. */
  note?: string;
}

/** Merges into one working tree come one after another. */
export class MergeQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  run<T>(root: string, work: () => Promise<T>): Promise<T> {
    const result = (this.#tails.get(root) ?? Promise.resolve()).then(work, work);
    const tail = result
      .catch(() => {})
      .finally(() => {
        if (this.#tails.get(root) === tail) this.#tails.delete(root);
      });
    this.#tails.set(root, tail);
    return result;
  }
}
export const Merges = createToken<MergeQueue>("subagent merges");

/** @throws {ToolError} no repository, no commit in it, or git refuses. */
export async function openWorktree(cwd: string, id: string, signal: AbortSignal): Promise<Worktree> {
  const root = await git(cwd, ["rev-parse", "--show-toplevel"], { signal }).then(
    (text) => text.trim(),
    (error: unknown) => {
      throw new ToolError(
        `Cannot give the subagent its own working tree: "${cwd}" is in no git repository (${errorMessage(error)})`,
      );
    },
  );
  const folder = await realpath(await mkdtemp(join(tmpdir(), "mortise-worktree-")));
  const path = join(folder, "tree");
  const worktree = new Worktree(root, folder, path, join(path, relative(root, await realpath(cwd))), id);
  try {
    await worktree.open(signal);
    return worktree;
  } catch (error) {
    await worktree.remove();
    throw new ToolError(`Cannot give the subagent its own working tree: ${errorMessage(error)}`);
  }
}

export class Worktree {
  /** Where the subagent works: the same place in its tree as its parent has in the repository. */
  readonly cwd: string;
  readonly #root: string;
  readonly #folder: string;
  readonly #path: string;
  readonly #id: string;
  #base = "";

  constructor(root: string, folder: string, path: string, cwd: string, id: string) {
    this.#root = root;
    this.#folder = folder;
    this.#path = path;
    this.cwd = cwd;
    this.#id = id;
  }

  async open(signal: AbortSignal): Promise<void> {
    await git(this.#root, ["worktree", "add", "--quiet", "--detach", this.#path, "HEAD"], { signal });
    const changes = await git(this.#root, ["diff", "--binary", "HEAD"], { signal, bytes: true });
    if (changes !== "")
      await git(this.#path, ["apply", "--binary", "--whitespace=nowarn"], { input: changes, signal, bytes: true });
    const untracked = await git(this.#root, ["ls-files", "--others", "--exclude-standard", "-z"], { signal });
    for (const file of untracked.split("\0")) if (file !== "") await copy(join(this.#root, file), join(this.#path, file));
    await git(this.#path, ["add", "--all"], { signal });
    // The parent's uncommitted work is the base, so that it is no change of the subagent's.
    await git(this.#path, [...IDENTITY, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", "Work in progress"], {
      signal,
    });
    this.#base = (await git(this.#path, ["rev-parse", "HEAD"], { signal })).trim();
    await mkdir(this.cwd, { recursive: true });
  }

  /** Brings the changes back, or keeps them, and removes the tree. */
  async close(options: CloseOptions): Promise<Closed> {
    try {
      await git(this.#path, ["add", "--all"]);
      const patch = await git(this.#path, ["diff", "--binary", "--cached", this.#base], { bytes: true });
      if (patch === "") return {};
      if (!options.merge)
        return { patchPath: options.keep(bytesOf(patch)), note: "Its changes were not applied; patchPath names them." };
      const merges = options.ctx.use(Merges);
      if (options.ctx.setting(AgentIsolationMerge) === "branch")
        return await merges.run(this.#root, () => this.#pick(options, patch));
      return await merges.run(this.#root, () => this.#apply(options, patch));
    } finally {
      await this.remove();
    }
  }

  async remove(): Promise<void> {
    await git(this.#root, ["worktree", "remove", "--force", this.#path]).catch(() => {});
    await rm(this.#folder, { recursive: true, force: true });
    await git(this.#root, ["worktree", "prune"]).catch(() => {});
  }

  async #apply({ keep }: CloseOptions, patch: string): Promise<Closed> {
    try {
      // All or nothing, and only the files: the parent's index stays as it is.
      await git(this.#root, ["apply", "--binary", "--whitespace=nowarn"], { input: patch, bytes: true });
      return {};
    } catch (error) {
      const patchPath = keep(bytesOf(patch));
      return { patchPath, note: `Its changes could not be applied (${firstLine(error)}). They are in ${patchPath}` };
    }
  }

  async #pick({ ctx, title }: CloseOptions, patch: string): Promise<Closed> {
    const subject = await commitSubject(ctx, title, patch);
    const branchName = `mortise/${this.#id.replace(/[^A-Za-z0-9_-]/g, "-")}-${Date.now().toString(36)}`;
    const message = join(this.#folder, "message");
    await writeFile(message, subject);
    await git(this.#path, [...IDENTITY, "commit", "--quiet", "--no-verify", "-a", "-F", message]);
    await git(this.#root, ["branch", branchName, (await git(this.#path, ["rev-parse", "HEAD"])).trim()]);
    try {
      await git(this.#root, [...IDENTITY, "cherry-pick", branchName]);
      await git(this.#root, ["branch", "-D", branchName]);
      return {};
    } catch (error) {
      await git(this.#root, ["cherry-pick", "--abort"]).catch(() => {});
      return { branchName, note: `Its commit could not be merged (${firstLine(error)}). It is on the branch ${branchName}` };
    }
  }
}

/** A fixed form, or one line of the model's when `agent.isolation.commits` says so; the fixed one when that fails. */
async function commitSubject(ctx: Context, title: string, patch: string): Promise<string> {
  const generic = title.replace(/\s+/g, " ").trim().slice(0, 72) || "Changes of a subagent";
  const { model } = ctx.conversation.selection;
  if (ctx.setting(AgentIsolationCommits) !== "ai" || model === undefined) return generic;
  try {
    const { text } = await sideRequest(ctx, {
      model,
      systemPrompt: [
        "Write the subject of a git commit for the patch: one line, imperative, at most 72 characters. Answer with it alone.",
      ],
      messages: [
        { role: "user", content: `${title}\n\n${bytesOf(patch).toString("utf8").slice(0, 20_000)}`, timestamp: Date.now() },
      ],
      maxTokens: 200,
      signal: AbortSignal.timeout(20_000),
    });
    return text.split("\n")[0]?.trim().slice(0, 100) || generic;
  } catch {
    return generic;
  }
}

async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const kind = await lstat(from);
  if (kind.isSymbolicLink()) await symlink(await readlink(from), to);
  else if (kind.isFile()) await copyFile(from, to);
}

interface GitOptions {
  input?: string;
  signal?: AbortSignal;
  /** Input and output are bytes, one a character: a patch may hold any encoding. */
  bytes?: boolean;
}

function git(cwd: string, args: readonly string[], options: GitOptions = {}): Promise<string> {
  const encoding = options.bytes === true ? "latin1" : "utf8";
  return new Promise((resolve, reject) => {
    // What a hook or an outer git has set would point at another repository.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_")));
    const child = execFile(
      "git",
      [...args],
      { cwd, env: { ...env, GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" }, maxBuffer: MAX_OUTPUT, encoding, signal: options.signal },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(stderr.trim() || error.message, { cause: error }));
      },
    );
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input ?? "", encoding);
  });
}

function bytesOf(patch: string): Buffer {
  return Buffer.from(patch, "latin1");
}

function firstLine(error: unknown): string {
  return errorMessage(error).split("\n")[0] ?? "";
}
