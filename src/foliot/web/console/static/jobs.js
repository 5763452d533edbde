// Pages of jobs: suggestions of the filter box, named views, selection of rows, long bulk actions, the editor.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

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
      row.className = "item"; link.href = "/console/jobs" + String(view.search); link.textContent = String(view.name);
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
