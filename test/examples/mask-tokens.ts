// Looks at the result of every tool before the model sees it. Hooks at one point run by priority, lower first: this one comes last.
import { defineHook, toolFinished } from "mortise/extension";

const SECRET = /\b(?:ghp|sk|xox[abp])[-_][A-Za-z0-9_-]{16,}\b/g;

export default defineHook(
  toolFinished,
  (finished) => {
    const content = finished.result.content.map((block) =>
      block.type === "text" ? { ...block, text: block.text.replace(SECRET, "[secret]") } : block,
    );
    return { ...finished, result: { ...finished.result, content } };
  },
  { priority: 100 },
);
