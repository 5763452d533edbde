// Drag over the histogram to choose a span, and the log of a run as it is written. Both work without this: bars are links, and the page
// shows the last lines.
const $ = (selector, root = document) => root.querySelector(selector);

// ---- the brush
function brush(box) {
  const svg = $("svg.bars", box);
  if (!svg || box.dataset.on) return;
  box.dataset.on = "1";
  const hint = $(".brush-hint");
  if (hint && matchMedia("(hover: hover)").matches) hint.hidden = false;
  const begin = Date.parse(box.dataset.since), whole = Date.parse(box.dataset.until) - begin;
  let from = null, mark = null;
  const share = (event) => { const { left, width } = svg.getBoundingClientRect(); return Math.min(Math.max((event.clientX - left) / width, 0), 1); };
  svg.addEventListener("pointerdown", (event) => { if (event.button === 0 && event.pointerType !== "touch") { from = share(event); event.preventDefault(); } });
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  addEventListener("pointermove", (event) => {
    if (from === null) return;
    const [left, right] = [from, share(event)].sort((a, b) => a - b);
    if (!mark && right - left < 0.01) return;
    const { width, height } = svg.viewBox.baseVal;
    if (!mark) { mark = document.createElementNS("http://www.w3.org/2000/svg", "rect"); mark.setAttribute("class", "selection"); mark.setAttribute("height", height); svg.append(mark); }
    mark.setAttribute("x", left * width); mark.setAttribute("width", (right - left) * width);
  });
  addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [left, right] = [from, share(event)].sort((a, b) => a - b);
    from = null;
    if (!mark) return;
    svg.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
    const address = new URL(box.dataset.href, location.href), at = (part) => new Date(Math.round((begin + part * whole) / 1000) * 1000).toISOString().replace(".000Z", "Z");
    address.searchParams.set("since", at(left)); address.searchParams.set("until", at(right));
    location.href = address;
  });
}
const start = () => { for (const box of document.querySelectorAll(".brush")) brush(box); };
start();
document.addEventListener("foliot:replaced", start);

// ---- the log
const box = $("#log-box"), lines = $("#log-lines");
if (box) {
  const most = 5000;
  let last = Number(box.dataset.cursor || 0);
  const add = (line) => {
    if (line.seq <= last) return;
    last = line.seq;
    const row = document.createElement("div"), at = document.createElement("span");
    row.className = line.stream === "log" ? "" : line.stream; row.dataset.seq = line.seq; at.className = "at"; at.textContent = line.at.slice(11, 23);
    row.append(at, line.text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "")); lines.append(row);
    while (lines.childElementCount > most) lines.firstElementChild.remove();
    const none = $("#no-log");
    if (none) none.remove();
  };
  if (box.dataset.stream) {
    const follow = $("#log-follow");
    let stream = null, over = false;
    const open = () => {
      if (stream || over || document.hidden || follow.getAttribute("aria-pressed") === "false") return;
      stream = new EventSource(box.dataset.stream + "?cursor=" + last);
      stream.addEventListener("line", (event) => add(JSON.parse(event.data)));
      stream.addEventListener("end", () => { over = true; close(); follow.hidden = true; });
    };
    const close = () => { stream?.close(); stream = null; };
    follow.hidden = false;
    follow.addEventListener("click", () => { const on = follow.getAttribute("aria-pressed") === "false"; follow.setAttribute("aria-pressed", String(on)); if (on) open(); else close(); });
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
    addEventListener("pagehide", close);
    open();
  }
  box.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-earlier]");
    if (!link) return;
    event.preventDefault();
    const first = $("[data-seq]", lines), answer = await fetch(link.dataset.earlier + (first?.dataset.seq || 1));
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html"), rows = [...page.querySelectorAll("[data-seq]")];
    const below = box.scrollHeight - box.scrollTop;
    link.after(...rows);
    box.scrollTop = box.scrollHeight - below;
    if (!rows.length || rows[0].dataset.seq === "1") link.remove();
  });
}
