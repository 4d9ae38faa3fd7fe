"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const [VERDICT, CASES, REFUSED, ELEMENTS, WORST, SECONDS, REASON, FOUND] = [0, 1, 2, 3, 4, 5, 6, 7];
  const SIGNS = {passed: "✓", falsified: "✗", mistrusted: "?", thin: "≈", refused: "⊘", unavailable: "∅", "not applicable": "–", "not run": "·"};
  const SAYS = {
    passed: "passed, with the largest error / bound", falsified: "falsified", mistrusted: "mistrusted: no evidence",
    thin: "tried too little", refused: "refused by the kernel", unavailable: "unavailable here", "not applicable": "not applicable",
    "not run": "not run",
  };

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "onclick") element.addEventListener("click", value);
      else if (value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== ""));
    return element;
  };
  /// A name that may be broken at its slashes and underscores.
  const id = (name) => make("span", {class: "id"}, ...name.split(/(?<=[/_-])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part])));
  const number = (x) => (typeof x === "number" ? x : {inf: Infinity, "-inf": -Infinity}[x] ?? NaN);
  const figure = (x) => {
    const v = number(x);
    if (Number.isNaN(v)) return "NaN";
    if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
    if (v === 0) return "0";
    return Math.abs(v) >= 1e4 || Math.abs(v) < 1e-3 ? v.toExponential(1).replace("e+", "e") : String(Number(v.toPrecision(3)));
  };
  const count = (n) => n.toLocaleString("en-US");
  const css = (verdict) => verdict.replace(" ", "-");

  // The explaining obligation of each falsified kernel, as {kernel, obligation, cell}.
  const kernels = data.ops.flatMap((op) => op.kernels.map((kernel) => ({op, kernel})));
  const failing = kernels.flatMap(({op, kernel}) => op.obligations
      .filter((o) => kernel.cells[o.id]?.[VERDICT] === "falsified" && (kernel.explanation?.obligation ?? o.id) === o.id).map((obligation) => ({op, kernel, obligation})));
  for (const entry of kernels)
    entry.words = [entry.op.op, entry.kernel.kernel, entry.kernel.backend, entry.kernel.status, entry.kernel.fault ?? "",
                   ...entry.op.obligations.flatMap((o) => [o.id, o.claim])].join(" ").toLowerCase();

  // ---- Filters
  const filter = {status: ""};
  const matching = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const op = $("op").value, backend = $("backend").value;
    return new Set(kernels.filter((entry) => (!filter.status || entry.kernel.status === filter.status) &&
                                             (!op || entry.op.op === op) && (!backend || entry.kernel.backend === backend) &&
                                             words.every((word) => entry.words.includes(word))).map((entry) => entry.kernel));
  };
  const options = (id, all, names) => $(id).append(make("option", {value: ""}, all), ...names.map((n) => make("option", {value: n}, n)));
  const chips = {};
  const chip = (status, label, n) => {
    chips[status] = make("button", {type: "button", "aria-pressed": String(status === ""), onclick: () => choose(status)},
                         status ? SIGNS[status] + " " : "", label, make("b", {}, String(n)));
    $("statuses").append(chips[status]);
  };
  const choose = (status) => {
    filter.status = filter.status === status ? "" : status;
    show();
  };

  // ---- The matrix
  const cellButton = (op, kernel, obligation) => {
    const cell = kernel.cells[obligation.id];
    if (!cell) return make("td", {});
    const verdict = cell[VERDICT];
    const text = verdict === "passed" || verdict === "falsified" ? figure(cell[WORST]) : verdict === "not applicable" ? "" : verdict;
    return make("td", {class: css(verdict)}, make("button", {
      type: "button", class: css(verdict), tabindex: "-1", "aria-label": `${kernel.kernel}, ${obligation.id}: ${verdict} ${text}`,
      title: `${obligation.id}: ${obligation.claim}`, onclick: () => openCell(op, kernel, obligation),
    }, make("span", {class: "sign", "aria-hidden": "true"}, SIGNS[verdict]), text));
  };
  const matrix = (op) => {
    const rows = op.kernels.map((kernel) => {
      const row = make("tr", {}, make("th", {scope: "row"}, make("button", {
        type: "button", tabindex: "-1", class: css(kernel.status), onclick: () => openKernel(op, kernel),
      }, make("span", {class: "sign", "aria-hidden": "true"}, SIGNS[kernel.status]),
         id(kernel.kernel.startsWith(op.op + "/") ? kernel.kernel.slice(op.op.length + 1) : kernel.kernel))),
                       ...op.obligations.map((o) => cellButton(op, kernel, o)));
      kernel.row = row;
      return row;
    });
    const head = make("tr", {}, make("th", {scope: "col"}, "kernel"),
                      ...op.obligations.map((o) => make("th", {scope: "col", title: `${o.id}: ${o.claim}`},
                                                           make("span", {}, o.id.split("-").pop()), make("span", {}, o.by))));
    op.count = make("small");
    op.section = make("section", {class: "op", "aria-label": op.op}, make("h2", {}, op.op, op.count),
                      make("div", {class: "box"}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))));
    rows[0].querySelector("button").tabIndex = 0;
    op.section.addEventListener("keydown", moveInTable);
    return op.section;
  };
  // One tab stop a table; arrows move inside it.
  const moveInTable = (event) => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    const here = event.target.closest("td, th");
    if (!step || !here || !here.closest("tbody")) return;
    const rows = [...here.closest("tbody").rows].filter((row) => !row.hidden);
    const row = rows[rows.indexOf(here.parentElement) + step[0]];
    const next = row?.cells[here.cellIndex + step[1]]?.querySelector("button");
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };

  // ---- Findings
  const findingRow = (found) => {
    const cell = found.kernel.cells[found.obligation.id];
    return make("li", {}, make("button", {type: "button", onclick: () => openCell(found.op, found.kernel, found.obligation)},
                               id(found.kernel.kernel), id(found.obligation.id),
                               make("span", {class: "what"}, cell[FOUND].message)));
  };

  const show = () => {
    const shown = matching();
    for (const op of data.ops) {
      let n = 0;
      for (const kernel of op.kernels) {
        kernel.row.hidden = !shown.has(kernel);
        n += !kernel.row.hidden;
      }
      op.section.hidden = n === 0;
      op.count.textContent = n === op.kernels.length ? `${n} kernel${n === 1 ? "" : "s"}` : `${n} of ${op.kernels.length} kernels`;
      const stops = [...op.section.querySelectorAll("tbody tr:not([hidden]) button")];
      if (n && !stops.some((b) => b.tabIndex === 0)) stops[0].tabIndex = 0;
    }
    for (const [status, button] of Object.entries(chips)) button.setAttribute("aria-pressed", String(status === filter.status));
    const found = failing.filter((f) => shown.has(f.kernel));
    $("findings").hidden = found.length === 0;
    $("findings-title").textContent = found.length === 1 ? "1 finding" : `${count(found.length)} findings`;
    const most = 200;
    $("finding-list").replaceChildren(...found.slice(0, most).map(findingRow),
                                      ...(found.length > most ? [make("li", {}, `and ${count(found.length - most)} more: search, or choose an operation`)] : []));
    $("nothing").hidden = shown.size !== 0;
  };

  // ---- Details
  const dialog = $("details");
  const row = (name, ...value) => (value[0] === undefined || value[0] === "" ? [] : [make("dt", {}, name), make("dd", {}, ...value)]);
  const openDialog = (hash, ...content) => {
    const stepped = document.activeElement?.dataset.step;
    dialog.replaceChildren(...content);
    if (!dialog.open) dialog.showModal();
    const next = stepped && dialog.querySelector(`[data-step="${stepped}"]:not(:disabled)`);
    (next || $("details-title")).focus();
    dialog.scrollTop = 0;
    history.replaceState(null, "", hash);
    for (const draw of drawings) draw();
  };
  const close = () => dialog.close();
  dialog.addEventListener("close", () => {
    drawings.length = 0;
    history.replaceState(null, "", location.pathname + location.search);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
  const bar = (...buttons) => make("div", {class: "bar"}, ...buttons, make("button", {type: "button", class: "close", onclick: close}, "Close"));
  const badge = (verdict) => make("span", {class: "badge " + css(verdict)}, SIGNS[verdict] + " " + verdict);
  const where = (kernel) => (kernel.source ? `${kernel.source}:${kernel.line}` : "");
  const aboutKernel = (kernel) => [
    ...row("Source", make("code", {}, where(kernel))), ...row("Arithmetic", kernel.arithmetic),
    ...row("Device", kernel.device), ...row("Planted fault", kernel.fault),
    ...(kernel.foreign ? row("Function", make("code", {}, kernel.foreign.symbol)) : []),
  ];

  const openKernel = (op, kernel) => {
    drawings.length = 0;
    const items = op.obligations.filter((o) => kernel.cells[o.id]).map((o) => {
      const verdict = kernel.cells[o.id][VERDICT];
      return make("li", {}, make("button", {type: "button", onclick: () => openCell(op, kernel, o)},
                                 make("span", {class: css(verdict)}, make("span", {class: "sign"}, SIGNS[verdict]),
                                      verdict === "passed" ? figure(kernel.cells[o.id][WORST]) : verdict),
                                 make("span", {}, id(o.id), " ", o.claim)));
    });
    openDialog("#" + encodeURIComponent(kernel.kernel), bar(), badge(kernel.status),
               make("h2", {id: "details-title", tabindex: "-1"}, id(kernel.kernel)),
               make("dl", {}, ...aboutKernel(kernel), ...row("Reason", kernel.reason), ...row("Time", kernel.seconds.toFixed(1) + " s")),
               make("h3", {}, "Obligations"), make("ul", {class: "list"}, ...items));
  };

  const alsoFails = ({explanation}, obligation) => explanation && (explanation.obligation === obligation.id ? explanation.also_fails.join(", ") : explanation.obligation);
  const openCell = (op, kernel, obligation) => {
    drawings.length = 0;
    const cell = kernel.cells[obligation.id], x = cell[FOUND];
    const at = failing.findIndex((f) => f.kernel === kernel && f.obligation === obligation);
    const step = (by) => make("button", {type: "button", "data-step": by, ...(failing[at + by] ? {} : {disabled: ""}), onclick: () => {
      const f = failing[at + by];
      openCell(f.op, f.kernel, f.obligation);
    }}, by < 0 ? "‹ Previous" : "Next ›");
    const content = [bar(...(at >= 0 && failing.length > 1 ? [step(-1), step(1)] : [])), badge(cell[VERDICT]),
                     make("h2", {id: "details-title", tabindex: "-1"}, x?.claim ?? obligation.claim)];
    const list = [...row("Kernel", make("button", {type: "button", class: "link", onclick: () => openKernel(op, kernel)}, id(kernel.kernel))),
                  ...row("Obligation", id(obligation.id), ` (${obligation.by})`)];
    if (x) {
      list.push(...row("What", x.message), ...row("Case", x.case), ...row("Call", x.call), ...row("Strides", x.strides), ...row("Race", x.race), ...row("Element", x.element && make("span", {class: "id"}, x.element)));
      if (x.element) list.push(...row("Got", make("span", {class: "figure"}, x.kind === "not written" ? x.kind : String(x.got))), ...row("Want", make("span", {class: "figure"}, String(x.want))),
                               ...row("Bound", make("span", {class: "figure"}, String(x.bound))));
      list.push(...row("Inputs", x.inputs && make("span", {class: "figure"}, x.inputs)), ...row("Suspect", x.suspect ?? obligation.suspect),
                ...row("Replay", x.replay && make("code", {}, x.replay)),
                ...row(kernel.explanation?.obligation === obligation.id ? "Also fails" : "Explained by", alsoFails(kernel, obligation)),
                ...row("Found", `case ${count(x.number)} of the campaign, shrunk in ${count(x.tried)} runs; fails ${x.fails}`));
    } else {
      list.push(...row("Reason", cell[REASON]), ...row("Error / bound", cell[VERDICT] === "passed" ? `${figure(cell[WORST])} at most` : ""),
                ...row("Suspect", `if it ever fails: ${obligation.suspect}`));
    }
    list.push(...row("Tried", `${count(cell[CASES])} cases${cell[REFUSED] ? `, ${count(cell[REFUSED])} of them refused` : ""}; ` +
                              `${count(cell[ELEMENTS])} output elements in ${cell[SECONDS].toFixed(1)} s`), ...aboutKernel(kernel));
    content.push(make("dl", {}, ...list));
    if (x?.errors) content.push(picture("Errors of the shrunk case", x.case, x.errors, x.index));
    if (x?.drawn_errors) content.push(picture("Errors of the case as it was drawn", x.drawn, x.drawn_errors));
    if (x?.left_out) content.push(make("p", {}, "A picture is left out here to keep the page small; report.json holds its figures."));
    openDialog(`#${encodeURIComponent(kernel.kernel)}@${encodeURIComponent(obligation.id)}`, ...content);
  };

  // ---- Heat maps
  const drawings = [];
  const shade = (style, name) => Number(style.getPropertyValue(name));
  /// Blue within the bound, orange to red beyond it, with a gap between to mark the limit.
  const colour = (style, v, map, largest) => {
    const mix = (a, b, t) => shade(style, a) + (shade(style, b) - shade(style, a)) * Math.min(Math.max(t, 0), 1);
    const limit = map.relative ? 1 : 0;
    if (!(v > limit)) {
      const t = v > 0 ? 1 + Math.log10(v) / 3 : 0;  // three decades below the bound
      return `hsl(212 ${t > 0 ? 55 : 12}% ${mix("--within-low", "--within-high", t)}%)`;
    }
    const high = Math.log10(top(map, largest)), low = map.relative ? 0 : high - 6;
    const t = high > low ? (Math.log10(v) - low) / (high - low) : 1;
    return `hsl(${28 - 26 * Math.min(Math.max(t, 0), 1)} 82% ${mix("--beyond-low", "--beyond-high", t)}%)`;
  };
  /// Ends of the colour scale.
  const top = (map, largest) => (map.relative ? Math.min(largest, 1e8) : largest);
  const bottom = (map, largest) => (map.relative ? 1e-3 : largest / 1e6);
  const range = (at, step, end) => (step === 1 ? String(at) : `${at * step}…${Math.min((at + 1) * step, end) - 1}`);

  const picture = (title, says, map, index) => {
    const cells = map.cells.map((line) => line.split(" ").filter(Boolean).map((word) => number(word in {inf: 1, nan: 1} ? word : Number(word))));
    const rows = cells.length, columns = cells[0]?.length ?? 0;
    const flat = cells.flat(), limit = map.relative ? 1 : 0;
    const wrong = flat.filter((v) => v > limit).length;
    const largest = Math.max(...flat.filter(Number.isFinite), map.relative ? 10 : 1e-30);
    const canvas = make("canvas", {tabindex: "0", role: "img"});
    const readout = make("div", {class: "readout", "aria-live": "polite"});
    const scale = make("canvas", {"aria-hidden": "true"});
    const unit = map.row_step * map.column_step === 1 ? "elements" : `cells of ${map.row_step} × ${map.column_step} elements`;
    const summary = `${map.tensor}, ${count(map.rows)} × ${count(map.columns)}: ${count(wrong)} of ${count(flat.length)} ${unit} ` +
                    (map.relative ? "beyond the bound" : "not exact");
    canvas.setAttribute("aria-label", summary);
    let size = 1, cursor = null;
    const say = () => {
      if (!cursor) return void (readout.textContent = "Point at a cell, or move with the arrow keys.");
      const v = cells[cursor[0]][cursor[1]];
      readout.textContent = `${map.tensor}, row ${range(cursor[0], map.row_step, map.rows)}, column ${range(cursor[1], map.column_step, map.columns)}: ` +
                            (map.relative ? `${figure(v)} × the bound` : `off by ${figure(v)}`) + (v > limit ? ", wrong" : "");
    };
    const draw = () => {
      const style = getComputedStyle(document.documentElement), ratio = window.devicePixelRatio || 1;
      const room = Math.min(figureElement.clientWidth || 560, 600);
      size = Math.max(4, Math.min(56, Math.floor(room / columns), Math.floor(480 / rows)));
      [canvas.width, canvas.height] = [columns * size * ratio, rows * size * ratio];
      canvas.style.width = columns * size + "px";
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const gap = size > 6 ? 1 : 0;
      cells.forEach((line, i) => line.forEach((v, j) => {
        pen.fillStyle = colour(style, v, map, largest);
        pen.fillRect(j * size, i * size, size - gap, size - gap);
        if (v > limit && size >= 9) {  // a mark, for readers who cannot see the colours
          const dark = style.getPropertyValue("--paper").trim();
          pen.strokeStyle = pen.fillStyle = dark;
          if (size >= 34) {
            pen.font = "600 12px system-ui, sans-serif";
            pen.textAlign = "center";
            pen.textBaseline = "middle";
            pen.fillText("✗ " + figure(v), (j + .5) * size, (i + .5) * size, size - 4);
          } else {
            const inset = size * .3;
            pen.beginPath();
            pen.moveTo(j * size + inset, i * size + inset);
            pen.lineTo((j + 1) * size - inset - gap, (i + 1) * size - inset - gap);
            pen.moveTo((j + 1) * size - inset - gap, i * size + inset);
            pen.lineTo(j * size + inset, (i + 1) * size - inset - gap);
            pen.stroke();
          }
        }
      }));
      if (cursor) {
        pen.strokeStyle = style.getPropertyValue("--ink").trim();
        pen.lineWidth = 2;
        pen.strokeRect(cursor[1] * size + 1, cursor[0] * size + 1, size - 2, size - 2);
      }
      drawScale(style, ratio);
    };
    const drawScale = (style, ratio) => {
      const steps = 60;
      [scale.width, scale.height] = [180 * ratio, 12 * ratio];
      scale.style.width = "180px";
      const pen = scale.getContext("2d");
      const low = Math.log10(bottom(map, largest)), high = Math.log10(top(map, largest));
      for (let k = 0; k < steps; ++k) {
        pen.fillStyle = colour(style, 10 ** (low + (high - low) * (k + .5) / steps), map, largest);
        pen.fillRect(k * 3 * ratio, 0, 3 * ratio, 12 * ratio);
      }
    };
    const point = (i, j) => {
      cursor = i >= 0 && j >= 0 && i < rows && j < columns ? [i, j] : cursor;
      draw();
      say();
    };
    canvas.addEventListener("pointermove", (e) => {
      const box = canvas.getBoundingClientRect();
      point(Math.floor((e.clientY - box.top) / box.height * rows), Math.floor((e.clientX - box.left) / box.width * columns));
    });
    canvas.addEventListener("keydown", (e) => {
      const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[e.key];
      if (!step) return;
      e.preventDefault();
      point(...(cursor ? [cursor[0] + step[0], cursor[1] + step[1]] : [0, 0]));
    });
    say();
    const figureElement = make("figure", {}, make("h3", {}, title), make("figcaption", {}, says), make("div", {class: "map"}, canvas), readout,
                               make("div", {class: "scale"}, figure(bottom(map, largest)), scale, (largest > top(map, largest) ? "≥ " : "") + figure(top(map, largest)),
                                    map.relative ? " error / bound; ✗ beyond 1" : " difference; ✗ not exact"),
                               make("figcaption", {}, summary));
    if (flat.length) drawings.push(draw);
    return figureElement;
  };
  const redraw = () => { for (const draw of drawings) draw(); };
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // ---- The page
  const totals = data.totals;
  const start = () => {
    $("verdict").textContent = totals.falsified ? `${count(totals.falsified)} of ${count(totals.kernels)} kernels falsified`
        : totals.mistrusted ? `Nothing falsified, ${count(totals.mistrusted)} of ${count(totals.kernels)} kernels mistrusted`
        : totals.thin ? `Nothing falsified, ${count(totals.thin)} of ${count(totals.kernels)} kernels tried too little`
        : data.never_evaluated.length ? "Nothing falsified, but clauses were never evaluated" : "Nothing falsified";
    document.title = "Assay: " + $("verdict").textContent;
    $("summary").textContent = data.summary + (data.never_evaluated.length ? `. Never evaluated: ${data.never_evaluated.join(", ")}` : "");
    options("op", "All operations", data.ops.map((op) => op.op));
    options("backend", "All back ends", [...new Set(kernels.map((k) => k.kernel.backend))].sort());
    chip("", "All", totals.kernels);
    for (const status of ["falsified", "mistrusted", "thin", "passed", "refused", "unavailable"])
      if (totals[status]) chip(status, status[0].toUpperCase() + status.slice(1), totals[status]);
    $("legend").append(...Object.entries(SAYS).map(([v, says]) => make("span", {class: "key-" + css(v)}, make("span", {class: "sign"}, SIGNS[v]), says)));
    $("matrices").append(...data.ops.map(matrix));
    const s = data.settings;
    $("footer").append(`assay ${data.version}`, s.seed ? `, seed ${s.seed}` : "", s.cases ? `, ${count(s.cases)} cases for each obligation` : "",
                       s.time ? `, ${s.time}` : "", s.shard ? `, shard ${s.shard}` : "", `, exit code ${data.exit_code}`);
    show();
    const [kernelId, obligationId] = location.hash.slice(1).split("@").map(decodeURIComponent);
    const entry = kernels.find((k) => k.kernel.kernel === kernelId);
    const obligation = entry?.op.obligations.find((o) => o.id === obligationId);
    if (entry && obligation && entry.kernel.cells[obligationId]) openCell(entry.op, entry.kernel, obligation);
    else if (entry) openKernel(entry.op, entry.kernel);
  };
  $("search").addEventListener("input", show);
  $("op").addEventListener("change", show);
  $("backend").addEventListener("change", show);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => {
    $("search").value = $("op").value = $("backend").value = "";
    filter.status = "";
    show();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select, textarea") || dialog.open) return;
    event.preventDefault();
    $("search").focus();
  });
  start();
})();
