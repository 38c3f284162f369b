// Readable one-line texts for values that do not fit their schema.
import type { z } from "zod";

/** `path: message` per issue, at most five, never the value itself. */
export function describeIssues(error: z.ZodError): string {
  const lines = error.issues.slice(0, 5).map((issue) => {
    const path = issue.path.map(String).join(".");
    return path === "" ? issue.message : `${path}: ${issue.message}`;
  });
  const more = error.issues.length - lines.length;
  return lines.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
