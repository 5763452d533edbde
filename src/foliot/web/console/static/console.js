// The script of every page. Pages work without it; it adds live refresh, the search palette, copy buttons and keys.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const CONSOLE = new URL("../", import.meta.url).pathname;  // behind a prefix, if the server has one
const said = document.body.dataset;

// ---- live regions: an event is a hint. The page is read again, and regions that changed are replaced by id.
// A region under the pointer or with the focus changes when they leave it. In a region of rows, known rows change
// in place and new ones wait behind a button.
let paused = false, timer = null, waiting = false, restUntil = 0, stream = null;
const held = new Map();
const isBusy = (region) => region.matches(":hover") || region.contains(document.activeElement);
function replace(old, next) {
  const open = $$("details[open]", old).map((each) => each.id).filter(Boolean);
  const boxes = $$("input[type=checkbox]:checked", old).map((each) => each.value);
  old.replaceChildren(...next.childNodes);
  old.className = next.className;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  for (const box of $$("input[type=checkbox]", old)) box.checked = boxes.includes(box.value);
  held.delete(old.id);
  old.dispatchEvent(new CustomEvent("foliot:replaced", { bubbles: true }));
}
function updateRows(old, next) {
  const bar = $(".new-bar", old), fresh = $$("[data-row]", next), known = new Map($$("[data-row]", old).map((row) => [row.dataset.row, row]));
  if (!bar || !known.size) { replace(old, next); return; }
  const added = fresh.filter((row) => !known.has(row.dataset.row)).length;
  for (const row of fresh) {
    const shown = known.get(row.dataset.row);
    if (shown && shown.innerHTML !== row.innerHTML && !isBusy(shown)) {
      const box = $("input[type=checkbox]", shown)?.checked;
      shown.replaceChildren(...row.cloneNode(true).childNodes);
      if (box) $("input[type=checkbox]", shown).checked = true;
    }
  }
  bar.hidden = !added;
  bar.textContent = bar.dataset.new.replace("{count}", added);
  if (added) held.set(old.id, next);
}
async function refresh() {
  timer = null;
  if (paused || document.hidden || $("dialog[open], [popover]:popover-open") || document.activeElement?.closest("form.keep")) { waiting = true; return; }
  waiting = false;
  const begin = performance.now();
  let answer;
  try { answer = await fetch(location.href, { headers: { "x-console-refresh": "1" } }); } catch { return; }
  restUntil = performance.now() + 4 * (performance.now() - begin); // a slow server is asked less often
  if (answer.redirected) { if (new URL(answer.url).pathname.endsWith("/sign-in")) location.href = answer.url; return; }
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of $$("[data-live]")) {
    const next = page.getElementById(old.id);
    if (!next) { if (old.dataset.live === "page") location.reload(); continue; } // the page has another shape now
    if (old.dataset.live === "rows") updateRows(old, next);
    else if (next.innerHTML === old.innerHTML) held.delete(old.id);
    else if (isBusy(old)) held.set(old.id, next);
    else replace(old, next);
  }
}
function hint() { if (!timer && said.liveUrl) timer = setTimeout(refresh, Math.max(1000, restUntil - performance.now())); }
function release() {
  for (const [id, next] of held) {
    const old = document.getElementById(id);
    if (old && old.dataset.live !== "rows" && !isBusy(old)) replace(old, next);
  }
  if (waiting) hint();
}
document.addEventListener("click", (event) => {
  const region = event.target.closest(".new-bar")?.closest("[data-live]");
  if (region && held.has(region.id)) replace(region, held.get(region.id));
});
document.addEventListener("pointerover", release, { passive: true });
document.addEventListener("focusout", () => setTimeout(release));
document.addEventListener("toggle", () => { if (waiting) hint(); }, true);

// ---- one stream per tab, closed while the tab is hidden; without it the page is read again every 30 seconds
const toggle = $("#live-toggle"), dot = $("#live-dot");
function showLive() {
  const on = stream?.readyState === 1;
  dot?.classList.toggle("on", on && !paused);
  const word = $("#live-word");
  if (word) word.textContent = paused ? toggle.dataset.off : on || !stream ? toggle.dataset.on : toggle.dataset.lost;
}
function connect() {
  if (stream || paused || document.hidden || !said.liveUrl || !$("[data-live]")) return; // the answer to a form has no address of its own
  stream = new EventSource(said.liveUrl);
  stream.onerror = showLive;
  stream.onopen = () => { showLive(); hint(); }; // what happened between the page and its stream sent no event
  for (const kind of ["reset", ...(said.kinds || "").split(" ")]) stream.addEventListener(kind, hint);
}
function disconnect() { stream?.close(); stream = null; }
document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else { connect(); hint(); } });
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
setInterval(() => { if (!document.hidden && stream && stream.readyState !== 1) { if (stream.readyState === 2) { disconnect(); connect(); } hint(); } }, 30000);
if (toggle && said.liveUrl) {
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    paused = !paused;
    toggle.setAttribute("aria-pressed", String(paused));
    if (paused) disconnect(); else { connect(); hint(); }
    showLive();
  });
}

// ---- relative times move on without asking the server
const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
function relative(milliseconds) {
  let rest = Math.floor(Math.abs(milliseconds) / 1000);
  if (!rest) return said.now;
  if (rest >= 120) rest -= rest % 60; // as in text.py
  const parts = [];
  for (const [unit, size] of units) { const n = Math.floor(rest / size); rest -= n * size; if (n) parts.push(n + " " + unit); }
  return (milliseconds > 0 ? said.in : said.ago).replace("{time}", parts.slice(0, 2).join(" "));
}
setInterval(() => {
  if (document.hidden) return;
  const now = Date.now();
  for (const each of $$("time[data-relative]")) {
    const text = relative(Date.parse(each.dateTime) - now);
    if (each.textContent !== text) each.textContent = text;
  }
}, 1000);

// ---- copy buttons, twins that remember the chosen tab, forms that need no button, the zone of this browser
document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (!copy || copy.dataset.label) return;
  await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent.trim());
  copy.dataset.label = copy.textContent; copy.textContent = copy.dataset.done;
  setTimeout(() => { copy.textContent = copy.dataset.label; delete copy.dataset.label; }, 1200);
});
function chooseTwins(kind) { for (const each of $$(`.twin input[value="${kind}"]`)) each.checked = true; }
try { const kind = localStorage.getItem("foliot-twin"); if (["cli", "curl", "python"].includes(kind)) chooseTwins(kind); } catch { /* storage is closed */ }
document.addEventListener("change", (event) => {
  if (event.target.matches(".twin input")) { chooseTwins(event.target.value); try { localStorage.setItem("foliot-twin", event.target.value); } catch { /* storage is closed */ } }
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
});
// A form with data-follow reads its page again while a person types, and shows the part that it names.
for (const form of $$("form[data-follow]")) {
  let pending = null;
  form.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(async () => {
      const address = form.action + "?" + new URLSearchParams(new FormData(form));
      const answer = await fetch(address);
      const next = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(form.dataset.follow);
      if (next) { document.getElementById(form.dataset.follow).replaceChildren(...next.childNodes); history.replaceState(null, "", address); }
    }, 200);
  });
}
for (const button of $$("[data-no-script]")) button.hidden = true;
const here = $(".settings-nav [aria-current]"); // on a small screen the list of sections is wider than the page
if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;
const mine = $("option[data-mine]");
if (mine) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  mine.value = zone; mine.textContent += " (" + zone + ")"; mine.hidden = false;
  if (mine.parentElement.dataset.chosen === zone) mine.selected = true;
}

// ---- the palette
const palette = $("#palette");
let chosen = 0, asked = 0;
function paletteRow(each) {
  const row = document.createElement("li"), link = document.createElement("a"), title = document.createElement("span"), note = document.createElement("small");
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg"), use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", CONSOLE + "static/icons.svg#" + each.icon); icon.append(use);
  icon.setAttribute("class", "icon s-" + each.icon); icon.setAttribute("aria-hidden", "true");
  link.href = each.href; link.tabIndex = -1; title.textContent = each.title; note.textContent = each.note || "";
  link.append(icon, title, note); row.append(link); row.setAttribute("role", "option");
  return row;
}
function mark(place) {
  const rows = $$("li[role=option]", palette);
  chosen = rows.length ? (place + rows.length) % rows.length : 0;
  rows.forEach((row, each) => { row.id = "palette-" + each; row.setAttribute("aria-selected", String(each === chosen)); });
  $("input", palette).setAttribute("aria-activedescendant", rows.length ? "palette-" + chosen : "");
  rows[chosen]?.scrollIntoView({ block: "nearest" });
}
async function fill(text) {
  const mine = ++asked;
  const answer = await fetch(CONSOLE + "search?q=" + encodeURIComponent(text));
  if (!answer.ok || mine !== asked) return; // a newer question is on its way
  const { groups } = await answer.json();
  const rows = groups.flatMap((group) => {
    const head = document.createElement("li");
    head.className = "palette-group"; head.textContent = group.title; head.setAttribute("role", "presentation");
    return [head, ...group.items.map(paletteRow)];
  });
  if (!rows.length) { const none = document.createElement("li"); none.className = "palette-group"; none.textContent = $(".hint", palette).dataset.none; rows.push(none); }
  $("ul", palette).replaceChildren(...rows);
  mark(0);
}
function openPalette() { if (!palette || palette.open) return; palette.showModal(); const box = $("input", palette); box.value = ""; fill(""); box.focus(); }
for (const button of $$("[data-palette]")) button.addEventListener("click", openPalette);
if (palette) {
  let pending = null;
  $("input", palette).addEventListener("input", (event) => { clearTimeout(pending); pending = setTimeout(() => fill(event.target.value), 120); });
  palette.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); mark(chosen + (event.key === "ArrowDown" ? 1 : -1)); }
    else if (event.key === "Enter") { event.preventDefault(); $('[aria-selected="true"] a', palette)?.click(); }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
}

// ---- keys
const pages = { t: "", j: "jobs", r: "runs", a: "agenda", c: "capacity", i: "incidents", f: "freezes", s: "settings" };
let prefix = false, row = -1;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); openPalette(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog, .box")) return;
  if (prefix) { prefix = false; if (event.key in pages) location.href = CONSOLE + pages[event.key]; return; }
  const rows = $$("table.rows tbody tr");
  if (event.key === "g") prefix = true;
  else if (event.key === "/") { const box = $("main .search input, main input[type=search]"); if (box) { event.preventDefault(); box.focus(); } }
  else if ((event.key === "j" || event.key === "k") && rows.length) {
    rows[row]?.classList.remove("selected");
    row = Math.min(Math.max(row + (event.key === "j" ? 1 : -1), 0), rows.length - 1);
    rows[row].classList.add("selected"); rows[row].scrollIntoView({ block: "nearest" });
  } else if (event.key === "x" && rows[row]) $("input[type=checkbox]", rows[row])?.click();
  else if (event.key === "Enter" && event.target === document.body && rows[row]) $("a.name, a", rows[row])?.click();
  else if (event.key === ".") $("main .actions button, main .actions a")?.focus();
  else if (event.key === "n") location.href = CONSOLE + "jobs/new";
  else if (event.key === "?") $("#keys")?.showPopover();
});
