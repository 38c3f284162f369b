// Puts the question about a project's code to the host and reads the answer. The text is made here and the answer is read here,
// past every extension: one that replaces `confirm` changes nothing.
import { realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { z } from "zod";
import type { HostRequestTable } from "./kernel/host-request-table.ts";
import { defineUiMethod } from "./kernel/host-requests.ts";
import type { ProjectCode, TrustCase } from "./services/trust.ts";
import type { ProjectTrust } from "./trust.ts";
import { codeOf, isCovered, real, watchedPaths } from "./trust-files.ts";

const LISTED = 20;

const RULE =
  "If you say yes, later edits of these files and new ones beside them are used at once. What the agent itself writes there with its write and edit tools is asked about, and what has changed by the next start is asked about then. No answer means no.";

const confirm = defineUiMethod({
  name: "confirm",
  mode: "dialog",
  summary: "Asks whether a project's code may be used.",
  params: z.object({ title: z.string(), message: z.string() }),
  read: (answer) => (typeof answer.confirmed === "boolean" ? { value: answer.confirmed } : undefined),
  fallback: false,
  example: { title: "Trust this project?", message: "…" },
});

export interface ProjectCodeOptions {
  trust: ProjectTrust;
  /** The working directory. */
  dir: string;
  requests: HostRequestTable;
  /** Whether a path is, or decides, a part of a loaded unit of the project. */
  isPartOfUnit(realPath: string): boolean;
}

export function createProjectCode({ trust, dir, requests, isPartOfUnit }: ProjectCodeOptions): ProjectCode {
  const listeners = new Set<() => void>();
  return {
    get watched() {
      return watchedPaths(dir);
    },
    pending: (settings) => trust.pending(dir, settings),
    async ask(settings, signal) {
      const asked = trust.pending(dir, settings);
      if (asked === undefined) return "no";
      const yes = await requests.ui(confirm, questionOf(dir, asked), { signal });
      if (yes !== true) return "no";
      // What was written while the question was read was not part of it.
      if (trust.pending(dir, settings)?.key !== asked.key) return "changed";
      trust.accept(dir, asked);
      return "yes";
    },
    elsewhere(other) {
      const project = real(other);
      return project === real(dir) ? [] : Object.keys(codeOf(project));
    },
    revoke: () => trust.revoke(dir),
    writing(realPath) {
      const project = real(dir);
      if (!trust.isTrusted(dir) || !(isCovered(project, realPath) || isPartOfUnit(realPath))) return;
      trust.markWriting(realPath);
      for (const listener of [...listeners]) listener();
    },
    onWritten(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function questionOf(dir: string, asked: TrustCase): { title: string; message: string } {
  const project = real(dir);
  const why = {
    new: `The project ${printable(project)} brings code and settings of its own. They would run programs with your rights:`,
    changed: `The project ${printable(project)} is no longer as you trusted it. These files are new or changed:`,
    written: `The agent wrote files that run as extensions or decide what runs in ${printable(project)}:`,
  }[asked.reason];
  const listed = asked.files.slice(0, LISTED).map((name) => `  ${printable(name)}${targetOf(project, name)}`);
  if (asked.files.length > LISTED) listed.push(`  … and ${asked.files.length - LISTED} more`);
  const title = asked.reason === "written" ? "Use what the agent wrote?" : "Trust this project?";
  return { title, message: [why, ...listed, "", RULE].join("\n") };
}

/** Where a link leads, when that is outside the project. */
function targetOf(project: string, name: string): string {
  try {
    const target = realpathSync(join(project, name));
    return target.startsWith(project + sep) ? "" : ` → ${printable(target)}`;
  } catch {
    return "";
  }
}

/** File names may hold anything, the question must not look like something else. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
}
