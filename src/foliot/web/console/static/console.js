// The only script of the console. Every page works without it; it adds live refresh, the search palette,
// the editor's preview, copy buttons and keyboard keys.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// ---- live regions: an event is a hint; the page is read again and changed regions are replaced by id
let paused = false, timer = null, waiting = false;
async function refresh() {
  timer = null;
  if (paused || document.hidden || $("dialog[open], :popover-open") || document.activeElement?.closest("form.keep")) { waiting = true; return; }
  waiting = false;
  const answer = await fetch(location.href, { headers: { "x-console-refresh": "1" } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of $$("[data-live]")) {
    const next = fresh.getElementById(old.id);
    if (next && next.innerHTML !== old.innerHTML && !old.contains(document.activeElement) && !old.matches(":hover")) {
      const open = $$("details[open]", old).map((each) => each.id).filter(Boolean);
      old.replaceChildren(...next.childNodes);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    }
  }
}
function hint() { if (!timer) timer = setTimeout(refresh, 1000); }
let stream = null;
function connect() {
  if (stream || document.hidden || !$("[data-live]")) return;
  stream = new EventSource("/console/live");
  const dot = $("#live-dot");
  stream.onopen = () => dot?.classList.add("on");
  stream.onerror = () => dot?.classList.remove("on");
  stream.onmessage = hint;
  for (const kind of (document.body.dataset.events || "").split(" ")) if (kind) stream.addEventListener(kind, hint);
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stream?.close(); stream = null; } else { connect(); if (waiting) hint(); }
});
document.addEventListener("focusout", () => { if (waiting) hint(); });
addEventListener("load", connect);
$("#live-toggle")?.addEventListener("click", (event) => {
  paused = !paused;
  event.currentTarget.setAttribute("aria-pressed", String(paused));
  if (!paused) hint();
});

// ---- relative times move on without asking the server
setInterval(() => { if (!document.hidden && $("[data-live]")) hint(); }, 15000);

// ---- copy buttons
document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent.trim());
    const label = copy.textContent; copy.textContent = copy.dataset.done; setTimeout(() => { copy.textContent = label; }, 1200);
  }
});
for (const select of $$("select[data-submit]")) select.addEventListener("change", () => select.form.requestSubmit());
for (const button of $$("[data-no-script]")) button.hidden = true;
const mine = $("option[data-mine]");
if (mine) { const zone = Intl.DateTimeFormat().resolvedOptions().timeZone; mine.value = zone; mine.textContent += " (" + zone + ")"; mine.hidden = false; if (mine.parentElement.dataset.chosen === zone) mine.selected = true; }

// ---- the editor's right side follows the form
const editor = $("#editor");
if (editor) {
  let pending = null;
  const update = () => {
    clearTimeout(pending);
    pending = setTimeout(async () => {
      const form = new FormData(editor);
      const wanted = new URLSearchParams({ kind: form.get("kind"), when: form.get("when") || "", timezone: form.get("timezone") || "" });
      const answer = await fetch("/console/jobs/preview?" + wanted);
      if (answer.ok) $("#preview").innerHTML = await answer.text();
    }, 180);
  };
  editor.addEventListener("input", (event) => { if (["kind", "when", "timezone"].includes(event.target.name)) update(); });
  const show = () => {
    const type = editor.elements.type.value, kind = editor.elements.kind.value;
    for (const part of $$("[data-type]", editor)) part.hidden = part.dataset.type !== type;
    for (const part of $$("[data-kind]", editor)) part.hidden = !part.dataset.kind.split(" ").includes(kind);
  };
  editor.addEventListener("change", show);
  show();
  for (const example of $$("[data-when]")) example.addEventListener("click", () => {
    editor.elements.kind.value = "words"; editor.elements.when.value = example.dataset.when; show(); update();
  });
}

// ---- the palette and the keys
const palette = $("#palette");
let chosen = 0;
async function fill(text) {
  const answer = await fetch("/console/search?q=" + encodeURIComponent(text));
  if (!answer.ok) return;
  const { items } = await answer.json();
  const pages = $$(".side nav a").map((each) => ({ title: each.textContent.trim(), note: "", href: each.getAttribute("href") }))
    .filter((each) => each.title.toLowerCase().includes(text.toLowerCase()));
  chosen = 0;
  $("ul", palette).replaceChildren(...[...items, ...pages].slice(0, 12).map((each, place) => {
    const row = document.createElement("li"), link = document.createElement("a"), note = document.createElement("small");
    link.href = each.href; link.textContent = each.title; note.textContent = each.note; link.append(note);
    row.append(link); row.setAttribute("aria-selected", String(place === 0)); return row;
  }));
}
function openPalette() { if (!palette || palette.open) return; palette.showModal(); const box = $("input", palette); box.value = ""; fill(""); box.focus(); }
$("#open-palette")?.addEventListener("click", openPalette);
if (palette) {
  let pending = null;
  $("input", palette).addEventListener("input", (event) => { clearTimeout(pending); pending = setTimeout(() => fill(event.target.value), 120); });
  palette.addEventListener("keydown", (event) => {
    const rows = $$("li", palette);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : rows.length - 1)) % Math.max(rows.length, 1);
      rows.forEach((row, place) => row.setAttribute("aria-selected", String(place === chosen)));
      rows[chosen]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") { event.preventDefault(); const link = rows[chosen] && $("a", rows[chosen]); if (link) location.href = link.href; }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
}
const pages = { t: "/console/", j: "/console/jobs", r: "/console/runs", a: "/console/agenda", c: "/console/capacity", f: "/console/freezes" };
let prefix = false, row = -1;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); openPalette(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog, [popover]")) return;
  if (prefix) { prefix = false; if (pages[event.key]) location.href = pages[event.key]; return; }
  const rows = $$("table.rows tbody tr");
  if (event.key === "g") prefix = true;
  else if (event.key === "/") { const box = $(".search input"); if (box) { event.preventDefault(); box.focus(); } }
  else if ((event.key === "j" || event.key === "k") && rows.length) {
    rows[row]?.classList.remove("selected");
    row = Math.min(Math.max(row + (event.key === "j" ? 1 : -1), 0), rows.length - 1);
    rows[row].classList.add("selected"); rows[row].scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && rows[row]) { const link = $("a", rows[row]); if (link) location.href = link.href; }
  else if (event.key === "?") $("#keys")?.showPopover();
});
