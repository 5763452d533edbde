// Pages of jobs: suggestions of the filter box, named views, selection of rows, long bulk actions, the editor.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const CONSOLE = new URL("../", import.meta.url).pathname;  // behind a prefix, if the server has one

// ---- the filter box completes the term under the cursor
const box = $("[data-suggest]");
if (box) {
  const options = $$("option", document.getElementById(box.getAttribute("list"))).map((each) => ({ value: each.value, says: each.label === each.value ? "" : each.label }));
  const list = document.createElement("ul");
  let shown = [], chosen = -1;
  box.removeAttribute("list");
  list.className = "suggest-list"; list.id = "suggest-list"; list.hidden = true; list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", box.getAttribute("aria-label"));
  box.setAttribute("role", "combobox"); box.setAttribute("aria-controls", list.id); box.setAttribute("aria-expanded", "false"); box.setAttribute("aria-autocomplete", "list");
  box.after(list);
  const term = () => { const before = box.value.slice(0, box.selectionStart); const start = before.search(/\S*$/); return { start, text: before.slice(start) }; };
  const close = () => { list.hidden = true; chosen = -1; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); };
  const mark = (place) => {
    chosen = shown.length ? (place + shown.length) % shown.length : -1;
    $$("li", list).forEach((row, each) => row.setAttribute("aria-selected", String(each === chosen)));
    if (chosen >= 0) { box.setAttribute("aria-activedescendant", "suggest-" + chosen); list.children[chosen].scrollIntoView({ block: "nearest" }); }
  };
  const take = (value) => {
    const { start, text } = term(), minus = text.startsWith("-") ? "-" : "", rest = box.value.slice(box.selectionStart), end = value.endsWith(":") ? "" : " ";
    box.value = box.value.slice(0, start) + minus + value + end + rest.trimStart();
    const at = start + minus.length + value.length + end.length;
    box.setSelectionRange(at, at); box.focus(); open();
  };
  const open = () => {
    const wanted = term().text.replace(/^-/, "").toLowerCase();
    shown = options.filter((each) => (wanted.includes(":") ? each.value : each.value.split(":")[0] + ":").toLowerCase().startsWith(wanted) && each.value.toLowerCase() !== wanted && (wanted.includes(":") || each.value.endsWith(":"))).slice(0, 12);
    list.replaceChildren(...shown.map((each, place) => {
      const row = document.createElement("li"), code = document.createElement("code"), says = document.createElement("small");
      code.textContent = each.value; says.textContent = each.says; row.append(code, says); row.id = "suggest-" + place;
      row.setAttribute("role", "option"); row.addEventListener("pointerdown", (event) => { event.preventDefault(); take(each.value); });
      return row;
    }));
    if (!shown.length) { close(); return; }
    list.hidden = false; box.setAttribute("aria-expanded", "true"); chosen = -1;
  };
  box.addEventListener("input", open);
  box.addEventListener("click", open);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (list.hidden) { if (event.key === "ArrowDown") { event.preventDefault(); open(); mark(0); } return; }
    if (event.key === "ArrowDown") { event.preventDefault(); mark(chosen + 1); }
    else if (event.key === "ArrowUp") { event.preventDefault(); mark(chosen - 1); }
    else if (event.key === "Escape") { event.preventDefault(); close(); }
    else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) { event.preventDefault(); take(shown[chosen].value); }
  });
}

// ---- views: an address with a name, kept in this browser
const views = $("[data-views]");
if (views) {
  const KEY = "foliot-job-views", menu = $("#views");
  const read = () => { try { return JSON.parse(localStorage.getItem(KEY)) || []; } catch { return []; } };
  const write = (all) => { try { localStorage.setItem(KEY, JSON.stringify(all)); } catch { /* storage is closed */ } draw(); };
  const draw = () => {
    const rows = read().map((view, place) => {
      const row = document.createElement("div"), link = document.createElement("a"), drop = document.createElement("button");
      row.className = "item"; link.href = CONSOLE + "jobs" + String(view.search); link.textContent = String(view.name);
      drop.type = "button"; drop.className = "link"; drop.textContent = "×"; drop.setAttribute("aria-label", views.dataset.drop + ": " + view.name);
      drop.addEventListener("click", () => write(read().filter((_, each) => each !== place)));
      row.append(link, drop); return row;
    });
    const form = document.createElement("form"), name = document.createElement("input"), save = document.createElement("button");
    name.placeholder = views.dataset.name; name.setAttribute("aria-label", views.dataset.name); name.required = true; name.maxLength = 60;
    save.textContent = views.dataset.save; form.append(name, save);
    form.addEventListener("submit", (event) => { event.preventDefault(); write([...read().filter((each) => each.name !== name.value), { name: name.value, search: location.search }].slice(-30)); });
    menu.replaceChildren(...rows, form);
  };
  views.hidden = false; draw();
}

// ---- selection of rows
const bulk = $("#bulk");
if (bulk) {
  const count = $(".bulk-count", bulk), all = $("[data-all]");
  const update = () => {
    const boxes = $$('input[name="id"]'), ticked = boxes.filter((each) => each.checked).length;
    count.textContent = count.dataset.count.replace("{count}", ticked);
    const head = $("[data-all]");
    if (head) { head.hidden = false; head.checked = ticked > 0 && ticked === boxes.length; head.indeterminate = ticked > 0 && ticked < boxes.length; }
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) for (const each of $$('input[name="id"]')) each.checked = event.target.checked;
    if (event.target.matches('[data-all], input[name="id"]')) update();
  });
  document.addEventListener("foliot:replaced", update);
  if (all) update();
}
const goOn = $("form[data-go-on]");
if (goOn) goOn.submit();

// ---- boxes that name a job offer the names that fit
let searching = null;
for (const box of $$("[data-job-search]")) box.addEventListener("input", () => {
  clearTimeout(searching);
  searching = setTimeout(async () => {
    const answer = await fetch(CONSOLE + "jobs/names?q=" + encodeURIComponent(box.value));
    if (!answer.ok) return;
    $("#jobs-found").replaceChildren(...(await answer.json()).items.map((name) => { const option = document.createElement("option"); option.value = name; return option; }));
  }, 150);
});

// ---- the editor: fields of the chosen kind and type, and a right side that follows the whole form
const editor = $("#editor");
if (editor) {
  const preview = $("#preview"), types = $("#type-fields");
  let pending = null, asked = 0;
  const update = () => {
    clearTimeout(pending);
    pending = setTimeout(async () => {
      const mine = ++asked;
      let answer;
      try { answer = await fetch(editor.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(editor)) }); } catch { return; }
      if (!answer.ok || mine !== asked) return; // a newer question is on its way
      preview.innerHTML = await answer.text();
    }, 250);
  };
  const show = () => {
    const kind = editor.elements.kind.value;
    for (const part of $$("[data-kind]", editor)) part.hidden = !part.dataset.kind.split(" ").includes(kind);
    if (kind === "after") $("#before").open = true;
    for (const part of $$("[data-picture]", editor)) part.hidden = part.dataset.picture !== editor.elements.overlap.value;
  };
  const chooseType = async () => {
    const wanted = new URLSearchParams([...new FormData(editor)].filter(([name]) => name === "type" || name === "config"));
    const answer = await fetch(CONSOLE + "jobs/type-fields?" + wanted);
    if (answer.ok) types.innerHTML = await answer.text();
  };
  editor.addEventListener("input", (event) => { if (!["note", "description", "notify"].includes(event.target.name)) update(); });
  editor.addEventListener("change", async (event) => { if (event.target.name === "type") await chooseType(); show(); update(); });
  editor.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-when]");
    if (!choice) return;
    editor.elements.kind.value = choice.dataset.kindChoice; editor.elements.when.value = choice.dataset.when; show(); update();
  });
  const zone = $("[data-my-zone]");
  if (zone) {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    zone.hidden = editor.elements.timezone.value === own; zone.textContent += ": " + own;
    zone.addEventListener("click", () => { editor.elements.timezone.value = own; zone.hidden = true; update(); });
  }
  show();
  if (!preview.querySelector(".banner")) update();
}
