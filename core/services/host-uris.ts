// Virtual files: every `<scheme>://` that is not the file system. Tools that take a path ask here first.
import type { Context } from "../kernel/context.ts";
import { type Definition, define } from "../kernel/definition.ts";
import { createToken } from "../kernel/services.ts";

export interface UriReadResult {
  content: string;
  /** A file that holds the content when it is too large for memory; `content` is empty then. */
  file?: string | undefined;
  contentType: string;
  notes?: readonly string[] | undefined;
  /** The content may be cached within a turn. */
  immutable: boolean;
}

/** A URL scheme owned by the host, by mortise (`artifact`, `skill`) or by an extension. `name` is the scheme in lower case. */
export interface UriSchemeDefinition extends Definition<"uri scheme"> {
  readonly description?: string | undefined;
  readonly immutable?: boolean | undefined;
  read(url: string, ctx: Context): Promise<UriReadResult>;
  /** Absent when the scheme is read-only. */
  write?(url: string, content: string, ctx: Context): Promise<void>;
}

export function defineUriScheme(scheme: Omit<UriSchemeDefinition, "kind">): UriSchemeDefinition {
  return define({ kind: "uri scheme", ...scheme });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "uri scheme": UriSchemeDefinition;
  }
}

/** Routes virtual URLs. */
export interface Uris {
  /** The scheme of `text` in lower case when it is a URL of a registered or web scheme, else undefined. */
  schemeOf(text: string): string | undefined;
  /** @throws {ToolError} when nobody owns the scheme: lists the ones there are. */
  read(url: string, ctx: Context): Promise<UriReadResult>;
  /** @throws {ToolError} when the scheme is read-only or unknown. */
  write(url: string, content: string, ctx: Context): Promise<void>;
}

export const Uris = createToken<Uris>("uris");
