// Readable one-line texts for values that do not fit their schema.
import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** `path: message` per issue, at most five, never the value itself. */
export function describeIssues(error: z.ZodError): string {
  const lines = error.issues.slice(0, 5).map((issue) => {
    const path = issue.path.map(String).join(".");
    return path === "" ? issueMessage(issue) : `${path}: ${issueMessage(issue)}`;
  });
  const more = error.issues.length - lines.length;
  return lines.join("; ") + (more > 0 ? `; and ${more} more` : "");
}

/** What an issue says; of a union, which zod calls "Invalid input", what each of its members expects. */
export function issueMessage(issue: Issue): string {
  const expected = [...new Set(expectedBy(issue))];
  return expected.length === 0 ? issue.message : `${issue.message}: expected ${expected.join(" or ")}`;
}

/** Empty when the message says it already. */
function expectedBy(issue: Issue): string[] {
  if (issue.code !== "invalid_union") return [];
  return issue.errors.flatMap(([first]) => {
    if (first === undefined) return [];
    if (first.code === "invalid_value")
      return first.values.map((value) => (typeof value === "string" ? `"${value}"` : String(value)));
    if (first.code === "invalid_type")
      return [first.path.length === 0 ? first.expected : `${first.path.map(String).join(".")} as ${first.expected}`];
    return first.code === "invalid_union" ? expectedBy(first) : [first.message];
  });
}
