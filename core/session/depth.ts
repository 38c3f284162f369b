// What is nested too deep: JSON.parse reads any depth, but writing it again, as an entry or in a request, exceeds the stack.

/** Well below what the stack bears, which depends on who calls. */
const MAX_LEVELS = 2000;

/** @param length of the text that `value` was read from: a short one cannot be deep. */
export function isTooDeep(value: unknown, length: number): boolean {
  if (length < 2 * MAX_LEVELS) return false;
  const open: [value: unknown, level: number][] = [[value, 0]];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const [inside, level] = at;
    if (typeof inside !== "object" || inside === null) continue;
    if (level >= MAX_LEVELS) return true;
    for (const member of Object.values(inside)) if (typeof member === "object") open.push([member, level + 1]);
  }
  return false;
}
