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
  for (const element of document.querySelectorAll("a, summary, button, img, article, input, pre")) click(element);
  // A search that fits everything: hits are opened and coloured.
  const search = document.getElementById("search");
  search.value = "pwn";
  search.dispatchEvent(new Event("input"));
  for (const link of [...document.querySelectorAll("#tree a")].slice(0, 8)) click(link);
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  for (const element of document.querySelectorAll("*")) element.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 100));
  return globalThis.hits;
})()`;
/** What the attacks would call. */
export const INJECT = "globalThis.hits = 0; globalThis.PWN = () => { globalThis.hits++; };";

/** Texts whose contrast with what is behind them is below 4.5 to 1 (WCAG AA). */
export const CONTRAST = `(() => {
  const linear = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const parse = (text) => [...text.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const over = (front, back, alpha) => back.map((value, index) => front[index] * alpha + value * (1 - alpha));
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === "" || element.closest("script, style, noscript") || !element.checkVisibility()) continue;
    let back = [255, 255, 255];
    let opacity = 1;
    const chain = [];
    for (let at = element; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
    for (const style of chain) {
      const color = parse(style.backgroundColor);
      back = over(color, back, color[3]);
      opacity *= Number(style.opacity);
    }
    const color = parse(chain.at(-1).color);
    const [a, b] = [light(over(color, back, color[3] * opacity)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(ratio.toFixed(2) + " " + element.tagName + "." + element.className + ": " + node.data.trim().slice(0, 20));
  }
  return [...found];
})()`;
