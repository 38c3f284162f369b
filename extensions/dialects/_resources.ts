// `resources_discover`: skills and prompt files that an extension brings along. Themes are for terminals.
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { defineContentFolder, z } from "mortise/extension";
import { call } from "./_events.ts";
import type { Handler, Runtime } from "./_runtime.ts";

const FIELDS = { skills: "skillPaths", prompts: "promptPaths" } as const;

const Resource = z.object({ content: z.enum(["skills", "prompts"]), path: z.string() });
type Resource = z.infer<typeof Resource>;
const Kept = z.object({ resources: z.array(Resource) });

/** During set-up: what the version before brought along stays until this one was asked, so that a reload hides nothing meanwhile. */
export function keepResources(runtime: Runtime): void {
  const kept = Kept.safeParse(runtime.scope.hot.data);
  if (kept.success) contribute(runtime, kept.data.resources);
}

/** Asks the handlers of a generation, in order, and contributes what they name; relative paths start at the extension. */
export async function discoverResources(runtime: Runtime, handlers: readonly Handler[], reason: string): Promise<void> {
  const { ctx } = runtime.scope;
  const folder = folderOf(runtime.owner);
  const resources: Resource[] = [];
  for (const handler of handlers) {
    const answer = await call(runtime, ctx, handler, { type: "resources_discover", cwd: ctx.conversation.cwd, reason });
    for (const content of Resource.shape.content.options) {
      const paths = answer?.[FIELDS[content]];
      for (const path of Array.isArray(paths) ? paths : []) {
        if (typeof path === "string") resources.push({ content, path: resolve(folder, path) });
      }
    }
  }
  if (!runtime.usable) return;
  contribute(runtime, resources);
  runtime.scope.hot.data = { resources };
}

/** A unit is a file or a folder. */
function folderOf(unit: string): string {
  return statSync(unit, { throwIfNoEntry: false })?.isDirectory() ? unit : dirname(unit);
}

function contribute(runtime: Runtime, resources: readonly Resource[]): void {
  const named = new Map(resources.map(({ content, path }) => [`${content} ${path}`, { content, path }]));
  runtime.scope.replace(
    "resources",
    [...named].map(([name, resource]) => defineContentFolder({ name, ...resource })),
  );
}
