// What the model's commands run inside when `tools.sandbox` asks for it. Implemented by extensions/sandbox.
import type { Context } from "../kernel/context.ts";
import { createToken } from "../kernel/services.ts";

export type SandboxMode = "read-only" | "workspace-write";

export interface Sandbox {
  /**
   * Program and arguments to put in front of a shell of the conversation of `ctx`.
   *
   * @throws {ToolError} when the system cannot do it: says what is missing
   */
  wrap(mode: SandboxMode, ctx: Context): Promise<readonly string[]>;
}

export const Sandbox = createToken<Sandbox>("sandbox");
