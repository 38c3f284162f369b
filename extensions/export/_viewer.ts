// The script of an exported page. It only shows, hides and scrolls what the daemon rendered: no markup is made of data here.
export const VIEWER = `"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { parents } = data;
  const root = document.documentElement;
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
  const byId = (id) => document.getElementById(id);
  const entries = all("article.entry");
  const rows = all("#tree > .row");
  const links = rows.map((row) => row.firstElementChild);
  const indexOf = new Map(rows.map((row, index) => [row, index]));
  const [search, tree, menu] = [byId("search"), byId("tree"), byId("menu")];
  root.classList.add("live");

  // Children, and the newest leaf below each entry.
  const children = parents.map(() => []);
  const roots = [];
  parents.forEach((parent, index) => (parent < 0 ? roots : children[parent]).push(index));
  const newest = parents.map((_, index) => index);
  for (let i = parents.length - 1; i >= 0; i--) if (parents[i] >= 0) newest[parents[i]] = Math.max(newest[parents[i]], newest[i]);

  // Depth grows where the conversation forks. Rows stand in tree order: each branch stays together.
  const depth = new Array(parents.length).fill(0);
  const order = [];
  for (const stack = roots.slice().reverse(); stack.length > 0; ) {
    const index = stack.pop();
    const siblings = parents[index] < 0 ? roots : children[parents[index]];
    depth[index] = (parents[index] < 0 ? 0 : depth[parents[index]]) + (siblings.length > 1 ? 1 : 0);
    if (depth[index] > 0) rows[index].classList.add("d" + Math.min(depth[index], 8));
    if (siblings.length > 1) rows[index].classList.add("fork");
    order.push(index);
    for (const child of children[index].slice().reverse()) stack.push(child);
  }
  if (order.some((index, at) => index !== at)) {
    const sorted = document.createDocumentFragment();
    for (const index of order) sorted.append(rows[index]);
    tree.append(sorted);
  }
  tree.setAttribute("role", "tree");
  rows.forEach((row, index) => {
    row.setAttribute("role", "none");
    links[index].setAttribute("role", "treeitem");
    links[index].setAttribute("aria-level", depth[index] + 1);
    links[index].tabIndex = -1;
  });

  let filter = "default";
  let current = -2;
  let onPath = new Set();
  const show = (leaf) => {
    if (leaf === current) return;
    current = leaf;
    const path = new Set();
    for (let i = leaf; i >= 0; i = parents[i]) path.add(i);
    for (let i = 0; i < entries.length; i++) {
      entries[i].classList.toggle("off", !path.has(i));
      rows[i].classList.toggle("on", path.has(i));
    }
    onPath = path;
    for (const chunk of all(".chunk")) chunk.classList.toggle("off", !all(".entry:not(.off)", chunk).length);
  };

  // One row can be reached with the tab key; the arrows lead from there.
  let stop = -1;
  const setStop = (index) => {
    if (stop >= 0) links[stop].tabIndex = -1;
    stop = index;
    if (stop >= 0) links[stop].tabIndex = 0;
  };
  const seen = (row) => row && !row.classList.contains("off");
  const step = (row, next) => {
    let at = row && row[next];
    while (at && !seen(at)) at = at[next];
    return at;
  };
  const edge = (end) => {
    const row = tree[end];
    return seen(row) ? row : step(row, end === "firstElementChild" ? "nextElementSibling" : "previousElementSibling");
  };
  const above = (row) => {
    let index = parents[indexOf.get(row)];
    while (index >= 0 && !seen(rows[index])) index = parents[index];
    return rows[index];
  };
  const moves = {
    ArrowDown: (row) => step(row, "nextElementSibling"),
    ArrowUp: (row) => step(row, "previousElementSibling"),
    ArrowLeft: above,
    ArrowRight: (row) => children[indexOf.get(row)].map((index) => rows[index]).find(seen) || step(row, "nextElementSibling"),
    Home: () => edge("firstElementChild"),
    End: () => edge("lastElementChild"),
  };
  const focusRow = (row) => {
    if (!row) return;
    setStop(indexOf.get(row));
    row.firstElementChild.focus();
  };

  const setMenu = (open, focus) => {
    root.classList.toggle("menu", open);
    menu.setAttribute("aria-expanded", String(open));
    byId("main").inert = open && getComputedStyle(menu.parentElement).display !== "none";
    if (focus) (open ? search : menu).focus();
  };

  const words = () => search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  /** Opens what hides a hit in an entry, and colours the hits. */
  const reveal = (entry) => {
    const wanted = words();
    if (globalThis.CSS && CSS.highlights) CSS.highlights.delete("hit");
    if (wanted.length === 0) return;
    const ranges = [];
    const walker = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < 500; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (const word of wanted) {
        for (let at = text.indexOf(word); at >= 0 && ranges.length < 500; at = text.indexOf(word, at + word.length)) {
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          ranges.push(range);
          for (let box = node.parentElement.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
        }
      }
    }
    if (globalThis.CSS && CSS.highlights && ranges.length > 0) CSS.highlights.set("hit", new Highlight(...ranges));
  };

  let marked = [];
  const mark = (...elements) => {
    for (const element of marked) {
      element.classList.remove("marked");
      if (element.firstElementChild.tagName === "A") element.firstElementChild.removeAttribute("aria-current");
    }
    for (const element of elements) {
      element.classList.add("marked");
      if (element.firstElementChild.tagName === "A") element.firstElementChild.setAttribute("aria-current", "location");
    }
    marked = elements;
  };
  const land = (element) => {
    setMenu(false, false);
    for (let box = element.parentElement.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "start" });
  };
  const goTo = (index) => {
    if (!onPath.has(index)) show(newest[index]);
    if (entries[index].classList.contains("minor") && filter !== "all") setFilter("all");
    mark(entries[index], rows[index]);
    setStop(index);
    reveal(entries[index]);
    rows[index].scrollIntoView({ block: "nearest" });
    land(entries[index]);
  };
  const follow = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      // Not encoded: taken as it stands.
    }
    const target = id === "" ? null : byId(id);
    if (target && target.matches("article.entry")) return goTo(Number(target.dataset.index));
    mark();
    if (target && target.matches("details.subagent")) {
      target.open = true;
      target.firstElementChild.tabIndex = 0;
      land(target.firstElementChild);
    } else if (id === "") show(data.leaf);
  };

  const texts = new Array(entries.length);
  const fits = (row) => {
    if (filter === "default") return !row.classList.contains("state");
    if (filter === "talk") return /\\b(user|assistant|summary|note)\\b/.test(row.className);
    if (filter === "user") return row.classList.contains("user");
    if (filter === "labelled") return "label" in row.dataset;
    return true;
  };
  const apply = () => {
    const wanted = words();
    let shown = 0;
    for (let i = 0; i < rows.length; i++) {
      let visible = fits(rows[i]);
      if (visible && wanted.length > 0) {
        const text = (texts[i] ??= (rows[i].textContent + " " + entries[i].textContent).toLowerCase());
        visible = wanted.every((word) => text.includes(word));
      }
      rows[i].classList.toggle("off", !visible);
      if (visible) shown++;
    }
    byId("count").textContent = shown === 0 ? "No entry fits" : shown + " of " + rows.length + " entries";
    root.classList.toggle("all", filter === "all");
    for (const button of all("[data-filter]")) button.setAttribute("aria-pressed", String(button.dataset.filter === filter));
    if (stop < 0 || !seen(rows[stop])) setStop(shown === 0 ? -1 : indexOf.get(edge("firstElementChild")));
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
    if (value.type === "image" && typeof value.mimeType === "string" && typeof value.data === "string" && value.data[0] === "$") {
      const text = value.data;
      return { ...value, data: text.startsWith("$image:") ? data.images[Number(text.slice(7))].data : text.slice(1) };
    }
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
  const bySelection = (text) => {
    const field = document.createElement("textarea");
    field.className = "field";
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  };
  const copy = async (button) => {
    const text = button.parentElement.querySelector("pre").textContent;
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      // Not allowed here: the older way asks nobody.
      done = bySelection(text);
      button.focus();
    }
    button.classList.toggle("done", done);
    button.setAttribute("aria-label", done ? "Copied" : "Copy");
    setTimeout(() => {
      button.classList.remove("done");
      button.setAttribute("aria-label", "Copy");
    }, 2000);
  };

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const link = target && target.closest("a");
    // The address is there already: nothing would tell of the click.
    if (link && link.hash && link.hash === location.hash && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      return follow();
    }
    const button = target && target.closest("button");
    if (button && button.dataset.filter) return setFilter(button.dataset.filter);
    if (button && Object.hasOwn(actions, button.dataset.action || "")) return actions[button.dataset.action]();
    if (button && button.classList.contains("copy")) return void copy(button);
    if (button && button === menu) return setMenu(!root.classList.contains("menu"), true);
    if (target && target.id === "shade") setMenu(false, true);
  });
  search.addEventListener("input", apply);
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const row = target.closest ? target.closest("#tree > .row") : null;
    if (key === "Escape") {
      if (target === search && search.value !== "") {
        search.value = "";
        apply();
      } else if (root.classList.contains("menu")) setMenu(false, true);
      else if (target === search) search.blur();
      else return;
    } else if (key === "/" && target !== search) {
      setMenu(getComputedStyle(menu.parentElement).display !== "none", false);
      search.focus();
      search.select();
    } else if (target === search && key === "ArrowDown") focusRow(edge("firstElementChild"));
    else if (target === search && key === "Enter") {
      const first = edge("firstElementChild");
      if (first) first.firstElementChild.click();
    } else if (row && Object.hasOwn(moves, key)) focusRow(moves[key](row));
    else return;
    event.preventDefault();
  });
  addEventListener("hashchange", follow);

  show(data.leaf);
  apply();
  follow();
  if (location.hash === "" && data.leaf >= 0 && order.some((index) => depth[index] > 0)) rows[data.leaf].scrollIntoView({ block: "nearest" });
})();
`;
