// What is tried on an exported page in a browser: expressions that run in the page.

/** What must be true of any page, run in it. */
export const INSPECT = `(() => {
  const bad = [];
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") bad.push(element.tagName + " " + name);
      if (["href", "src", "action", "formaction", "xlink:href"].includes(name)) {
        const image = element.tagName === "IMG" && /^data:image\\/(png|jpeg|gif|webp);base64,/.test(value);
        if (!image && !/^(https?:|mailto:|#)/.test(value)) bad.push(element.tagName + " " + name + "=" + value.slice(0, 80));
        if (/^(https?|mailto):/.test(value) && element.rel !== "noopener noreferrer") bad.push("rel of " + value.slice(0, 80));
      }
    }
  }
  for (const tag of ["iframe", "object", "embed", "svg", "math", "form", "base", "link"])
    if (document.querySelector(tag)) bad.push(tag);
  if (document.scripts.length !== 2) bad.push(document.scripts.length + " scripts");
  if (document.querySelectorAll("style").length !== 1) bad.push("styles");
  return bad;
})()`;

/** Opens and clicks everything there is; links would leave the page, so they are only looked at. */
export const CLICK_ALL = `(async () => {
  const click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  addEventListener("click", (event) => event.target.closest("a[target]") && event.preventDefault(), true);
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const element of document.querySelectorAll("a, summary, .row > button, [data-filter], [data-action=theme], [data-action=thinking], [data-action=tools], #menu, img, article, input"))
    click(element);
  for (const element of document.querySelectorAll("*")) element.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 100));
  return globalThis.hits;
})()`;
/** What the attacks would call. */
export const INJECT = "globalThis.hits = 0; globalThis.PWN = () => { globalThis.hits++; };";
