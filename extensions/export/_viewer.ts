// The script of an exported page. It only shows, hides and scrolls what the daemon rendered: no markup is made of data here.
export const VIEWER = `"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { parents } = data;
  const root = document.documentElement;
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
  const entries = all("article.entry");
  const rows = all("#tree > .row");
  const search = document.getElementById("search");
  root.classList.add("live");

  // Children, and the newest leaf below each entry.
  const children = parents.map(() => []);
  const roots = [];
  parents.forEach((parent, index) => (parent < 0 ? roots : children[parent]).push(index));
  const newest = parents.map((_, index) => index);
  for (let i = parents.length - 1; i >= 0; i--) if (parents[i] >= 0) newest[parents[i]] = Math.max(newest[parents[i]], newest[i]);

  // Depth grows where the conversation forks.
  const depth = new Array(parents.length).fill(0);
  for (let i = 0; i < parents.length; i++) {
    const siblings = parents[i] < 0 ? roots : children[parents[i]];
    const base = parents[i] < 0 ? 0 : depth[parents[i]];
    depth[i] = base + (siblings.length > 1 ? 1 : 0);
    rows[i].classList.add("d" + Math.min(depth[i], 8));
    if (siblings.length > 1) rows[i].classList.add("fork");
  }
  // Rows in tree order: each branch stays together.
  const order = [];
  const stack = roots.slice().reverse();
  while (stack.length > 0) {
    const index = stack.pop();
    order.push(index);
    for (const child of children[index].slice().reverse()) stack.push(child);
  }
  document.getElementById("tree").append(...order.map((index) => rows[index]));

  let filter = "default";
  let current = data.leaf;
  const onPath = new Set();

  const show = (leaf) => {
    current = leaf;
    onPath.clear();
    for (let i = leaf; i >= 0; i = parents[i]) onPath.add(i);
    entries.forEach((entry, index) => {
      entry.classList.toggle("off", !onPath.has(index));
    });
    rows.forEach((row, index) => {
      row.classList.toggle("on", onPath.has(index));
    });
  };

  const goTo = (index, smooth) => {
    if (!onPath.has(index)) show(newest[index]);
    const entry = entries[index];
    if (entry.classList.contains("minor") && !root.classList.contains("all")) setFilter("all");
    for (let box = entry.parentElement.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    for (const marked of all(".marked")) marked.classList.remove("marked");
    entry.classList.add("marked");
    rows[index].classList.add("marked");
    entry.scrollIntoView({ block: "start", behavior: smooth ? "smooth" : "auto" });
    rows[index].scrollIntoView({ block: "nearest" });
    root.classList.remove("menu");
  };

  const texts = new Array(entries.length);
  const textOf = (index) => (texts[index] ??= (rows[index].textContent + " " + entries[index].textContent).toLowerCase());
  const fits = (row, index) => {
    if (filter === "default") return !row.classList.contains("state");
    if (filter === "talk") return /\\b(user|assistant|summary|note)\\b/.test(row.className);
    if (filter === "user") return row.classList.contains("user");
    if (filter === "labelled") return "label" in row.dataset;
    return true;
  };
  const apply = () => {
    const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, index) => {
      const visible = fits(row, index) && words.every((word) => textOf(index).includes(word));
      row.classList.toggle("off", !visible);
      if (visible) shown++;
    });
    document.getElementById("count").textContent = shown + " of " + rows.length + " entries";
    root.classList.toggle("all", filter === "all");
    for (const button of all("[data-filter]")) button.classList.toggle("active", button.dataset.filter === filter);
  };
  const setFilter = (value) => {
    filter = value;
    apply();
  };

  for (const image of all("img[data-image]")) {
    const stored = data.images[Number(image.dataset.image)];
    if (stored) image.src = "data:" + stored.mimeType + ";base64," + stored.data;
  }

  const restore = (value) => {
    if (Array.isArray(value)) return value.map(restore);
    if (value === null || typeof value !== "object") return value;
    if (value.type === "image" && value.data !== null && typeof value.data === "object" && typeof value.data.$image === "number")
      return { ...value, data: data.images[value.data.$image].data };
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, restore(member)]));
  };
  const toggleAll = (selector) => {
    const boxes = all(selector);
    const open = !boxes.every((box) => box.open);
    for (const box of boxes) box.open = open;
  };
  const actions = {
    thinking: () => toggleAll("details.thinking"),
    tools: () => toggleAll("details.call, details.result"),
    theme: () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    },
    download: () => {
      const text = data.lines.map((line) => JSON.stringify(restore(line))).join("\\n") + "\\n";
      const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = data.fileName;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    },
  };

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!target) return;
    const row = target.closest(".row");
    if (row) return goTo(Number(row.dataset.index), true);
    const button = target.closest("button");
    if (button && button.dataset.filter) return setFilter(button.dataset.filter);
    if (button && Object.hasOwn(actions, button.dataset.action || "")) return actions[button.dataset.action]();
    if (button && button.id === "menu") return root.classList.toggle("menu");
    if (target.id === "shade") root.classList.remove("menu");
  });
  search.addEventListener("input", apply);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") root.classList.remove("menu");
    if (event.key !== "/" || event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    root.classList.add("menu");
    search.focus();
  });
  const follow = () => {
    const entry = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (entry && entry.matches("article.entry")) goTo(Number(entry.dataset.index), false);
  };
  addEventListener("hashchange", follow);

  show(current);
  apply();
  follow();
})();
`;
