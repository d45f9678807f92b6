"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const el = (id) => document.getElementById(id);
  // Kinds in the order of their numbers in the data; the last is a run of short spans drawn together.
  const KINDS = ["leaf", "wait", "idle", "runtime", "journal", "fetch", "store", "queue", "aside", "asleep", "woken"];
  const LABELS = { leaf: "leaf", wait: "wait", idle: "idle", runtime: "runtime", journal: "journal",
    fetch: "fetch", store: "store", queue: "queued", aside: "set aside", asleep: "waits by itself", woken: "woken, not running" };
  const MANY = KINDS.length;
  const ROW = 26, GAP = 4, AXIS = 26, NAMES = 150, PATH = 3;
  const wall = Math.max(1, data.wall_ns);
  const canvas = el("lanes"), context = canvas.getContext("2d"), tip = el("tip");

  // Times in nanoseconds from the start of the run; starts are stored as differences.
  const lanes = data.lanes.map((lane) => {
    const start = new Float64Array(lane.s.length);
    let at = 0;
    lane.s.forEach((delta, i) => { at += delta; start[i] = at; });
    return { ...lane, start, length: Float64Array.from(lane.d), kind: Uint8Array.from(lane.k) };
  });
  const view = { from: 0, to: wall };
  const filter = { kinds: new Set(KINDS.map((_, i) => i)), worker: "", task: "", edge: "", path: true };
  let chosen = null, colours = {}, frames = 0;

  const time = (ns) => {
    const size = Math.abs(ns);
    const [value, unit] = size >= 1e9 ? [ns / 1e9, "s"] : size >= 1e6 ? [ns / 1e6, "ms"]
      : size >= 1e3 ? [ns / 1e3, "µs"] : [ns, "ns"];
    return `${Number(value.toPrecision(4))} ${unit}`;
  };
  const bytes = (count) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (count >= 1024 && i < units.length - 1) { count /= 1024; i += 1; }
    return `${Number(count.toPrecision(3))} ${units[i]}`;
  };
  const percent = (part, all) => `${(100 * part / Math.max(all, 1e-300)).toFixed(1)} %`;
  const make = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };

  const shown = () => lanes.filter((lane) =>
    (filter.worker === "" || lane.worker === undefined || lane.worker === Number(filter.worker)) &&
    (filter.edge === "" || lane.edge === undefined || lane.edge === Number(filter.edge)));
  const passes = (lane, i) => {
    const kind = lane.kind[i];
    if (kind === MANY) return true;
    if (!filter.kinds.has(kind)) return false;
    if (kind === 0) return filter.task === "" || lane.x[i] === Number(filter.task);
    if (lane.kernel !== true && filter.edge !== "" && lane.x[i] !== Number(filter.edge)) return false;
    return filter.task === "" || lane.worker === undefined || lane.kernel === true;
  };
  /** The first span of a lane that ends after `t`. */
  const firstAfter = (lane, t) => {
    let low = 0, high = lane.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.start[middle] + lane.length[middle] <= t) low = middle + 1; else high = middle;
    }
    return low;
  };

  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of [...KINDS, "ink", "faint", "line", "panel", "muted", "path", "mark"]) {
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
  };
  const colourOf = (kind) => colours[KINDS[kind]];

  const drawAxis = (width) => {
    const span = view.to - view.from, plot = width - NAMES;
    const rough = span / Math.max(2, plot / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
    context.fillStyle = colours.faint;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    for (let k = Math.ceil(view.from / step); k * step <= view.to; k += 1) {
      const x = Math.round(NAMES + (k * step - view.from) / span * plot) + 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 7);
      context.lineTo(x, canvas.clientHeight);
      context.stroke();
      // The last one may have no room behind its line.
      const text = time(k * step), fits = x + 4 + context.measureText(text).width <= width;
      context.textAlign = fits ? "left" : "right";
      context.fillText(text, fits ? x + 4 : x - 4, 13);
    }
  };
  /** Draws parts of one column or rectangle on top of each other, each as high as its share. */
  const stack = (x, width, y, height, sums, whole) => {
    let bottom = y + height;
    for (let kind = 0; kind < MANY; kind += 1) {
      const part = filter.kinds.has(kind) ? height * Math.min(1, sums(kind) / whole) : 0;
      if (part > 0) {
        context.fillStyle = colourOf(kind);
        context.fillRect(x, bottom - part, width, part);
        bottom -= part;
      }
    }
  };
  const drawLane = (lane, y, width) => {
    const span = view.to - view.from, plot = width - NAMES, scale = plot / span, height = ROW - PATH;
    const left = NAMES + Math.max(0, (0 - view.from) * scale), right = NAMES + Math.min(plot, (wall - view.from) * scale);
    const runtime = lane.worker !== undefined && !lane.kernel && filter.kinds.has(3) && filter.edge === "" && filter.task === "";
    context.fillStyle = runtime ? colours.runtime : colours.muted;
    context.fillRect(left, y, Math.max(0, right - left), height);
    // Spans narrower than a pixel add up in their column, so that none is lost and none is drawn too wide.
    const columns = Math.ceil(plot) + 1;
    const sums = new Float64Array(columns * (MANY + 1));
    let touched = false;
    for (let i = firstAfter(lane, view.from); i < lane.start.length && lane.start[i] < view.to; i += 1) {
      const x0 = (lane.start[i] - view.from) * scale, x1 = x0 + lane.length[i] * scale;
      const kind = lane.kind[i], ok = passes(lane, i);
      if (x1 - x0 >= 1.5) {
        const a = Math.max(0, x0), b = Math.min(plot, x1);
        context.fillStyle = ok && kind < MANY ? colourOf(kind) : colours.muted;
        context.fillRect(NAMES + a, y, Math.max(b - a - (b - a > 4 ? 0.6 : 0), 0.5), height);
        if (kind === MANY) {
          const parts = lane.g[lane.x[i]];
          stack(NAMES + a, b - a, y, height, (k) => parts[k + 1], lane.length[i]);
        }
      } else {
        touched = true;
        for (let x = Math.max(0, x0); x < Math.min(x1, plot);) {
          const column = Math.floor(x), next = Math.min(column + 1, x1), at = column * (MANY + 1);
          if (kind === MANY) {
            const parts = lane.g[lane.x[i]];
            for (let k = 0; k < MANY; k += 1) sums[at + k] += (next - x) * parts[k + 1] / lane.length[i];
          } else {
            sums[at + (ok ? kind : MANY)] += next - x;
          }
          x = next > x ? next : x + 1e-6;
        }
      }
    }
    for (let column = 0; touched && column < columns; column += 1) {
      const at = column * (MANY + 1);
      let any = sums[at + MANY];
      for (let k = 0; k < MANY; k += 1) any += sums[at + k];
      if (any > 0) {
        if (sums[at + MANY] > 0) {
          context.fillStyle = colours.muted;
          context.fillRect(NAMES + column, y, 1, height * Math.min(1, any));
        }
        stack(NAMES + column, 1, y, height, (k) => sums[at + k], 1);
      }
    }
  };
  const drawPath = (rows, width) => {
    const scale = (width - NAMES) / (view.to - view.from);
    context.fillStyle = colours.path;
    const top = new Map(rows.map((lane, row) => [lane.kernel ? -1 : lane.worker, AXIS + row * (ROW + GAP)]));
    for (const [start, length, worker] of data.path) {
      const y = top.get(worker);
      if (y === undefined || start + length < view.from || start > view.to) continue;
      const x0 = Math.max(0, (start - view.from) * scale);
      const x1 = Math.min(width - NAMES, (start + length - view.from) * scale);
      context.fillRect(NAMES + x0, y + ROW - PATH, Math.max(0.5, x1 - x0), PATH);
    }
  };
  /** Ticks above a worker's row where a policy decided otherwise than before. */
  const drawDecisions = (rows, width) => {
    const scale = (width - NAMES) / (view.to - view.from);
    context.fillStyle = colours.mark;
    const top = new Map(rows.map((lane, row) => [lane.kernel ? -1 : lane.worker, AXIS + row * (ROW + GAP)]));
    for (const [at, worker] of data.decisions) {
      const y = top.get(worker), x = (at - view.from) * scale;
      if (y === undefined || x < 0 || x > width - NAMES) continue;
      context.fillRect(NAMES + x - 0.75, y - GAP, 1.5, GAP + 3);
    }
  };
  /** The last decision of a worker before a time, in words. */
  const decided = (worker, t) => {
    let last = null;
    for (const decision of data.decisions) {
      if (decision[0] > t) break;
      if (decision[1] === worker) last = decision;
    }
    if (last === null) return "";
    const given = last[3] === 0 ? "waits" : `${last[3]} worker${last[3] === 1 ? "" : "s"}`;
    return `\nsince ${time(last[0])} decided: ${data.labels[last[2]]}, ${given} (strand ${last[4]})`;
  };
  const draw = () => {
    const rows = shown();
    const width = el("frame").clientWidth, height = AXIS + rows.length * (ROW + GAP) + 4;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    drawAxis(width);
    rows.forEach((lane, row) => {
      const y = AXIS + row * (ROW + GAP);
      drawLane(lane, y, width);
      context.fillStyle = colours.panel;
      context.fillRect(0, y, NAMES, ROW);
      context.fillStyle = colours.ink;
      context.textAlign = "left";
      context.fillText(lane.name, 8, y + ROW / 2 + 3, NAMES - 16);
    });
    if (filter.path) drawPath(rows, width);
    drawDecisions(rows, width);
    if (chosen) {
      const scale = (width - NAMES) / (view.to - view.from);
      context.strokeStyle = colours.mark;
      context.lineWidth = 2;
      rows.forEach((lane, row) => {
        if (!chosen.workers.includes(lane.worker)) return;
        const x0 = Math.max(-4, (chosen.start - view.from) * scale);
        const x1 = Math.min(width - NAMES + 4, (chosen.start + chosen.length - view.from) * scale);
        if (x1 > x0) context.strokeRect(NAMES + x0, AXIS + row * (ROW + GAP) - 1, Math.max(3, x1 - x0), ROW);
      });
    }
    frames += 1;
  };
  let pending = false;
  const refresh = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  };

  const show = (from, to) => {
    const least = Math.min(wall, 10);
    let span = Math.min(Math.max(to - from, least), wall);
    if (!Number.isFinite(span)) span = wall;
    const first = Math.min(Math.max(from, 0), wall - span);
    view.from = first;
    view.to = first + span;
    refresh();
  };
  const zoom = (factor, around = (view.from + view.to) / 2) =>
    show(around - (around - view.from) * factor, around + (view.to - around) * factor);
  const pan = (part) => {
    const by = (view.to - view.from) * part;
    show(view.from + by, view.to + by);
  };
  const tickAt = (x) => view.from + Math.max(0, x - NAMES) / (canvas.clientWidth - NAMES) * (view.to - view.from);

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) pan((event.deltaX || event.deltaY) / 1000);
    else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 400), tickAt(event.offsetX));
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: view.from, to: view.to };
    canvas.classList.add("moving");
    try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that is no more */ }
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const by = (drag.x - event.clientX) / (canvas.clientWidth - NAMES) * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
      tip.hidden = true;
    } else {
      hover(event);
    }
  });
  const release = () => { drag = null; canvas.classList.remove("moving"); };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, tickAt(event.offsetX)));
  canvas.addEventListener("keydown", (event) => {
    const keys = {
      ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), ArrowUp: () => zoom(0.6), ArrowDown: () => zoom(1 / 0.6),
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => show(0, wall),
      Home: () => show(0, view.to - view.from), End: () => show(wall - (view.to - view.from), wall),
    };
    const act = keys[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
  });

  /** What lies under a point of the canvas, in words. */
  const describe = (x, y) => {
    const rows = shown(), row = Math.floor((y - AXIS) / (ROW + GAP));
    if (x < NAMES || row < 0 || row >= rows.length) return null;
    const lane = rows[row], t = tickAt(x);
    let i = firstAfter(lane, t);
    // Between two pixels anything may lie: take the span that is nearest.
    if (i >= lane.start.length || lane.start[i] > t + (view.to - view.from) / canvas.clientWidth) {
      return `${lane.name}, ${time(t)}\n${lane.kernel ? "on a processor" : lane.worker === undefined ? "at rest" : "runtime"}${decided(lane.worker, t)}`;
    }
    const kind = lane.kind[i], head = `${lane.name}, ${time(lane.start[i])}, for ${time(lane.length[i])}\n`;
    if (kind === MANY) {
      const parts = lane.g[lane.x[i]];
      const told = KINDS.map((k, n) => [k, parts[n + 1]]).filter(([, ns]) => ns > 0);
      return `${head}${parts[0]} short ones: ${told.map(([k, ns]) => `${LABELS[k]} ${time(ns)}`).join(", ")}`;
    }
    const label = lane.l[i] >= 0 ? ` ${data.labels[lane.l[i]]}` : "";
    const edge = data.edges[lane.x[i]] ? data.edges[lane.x[i]].name : "no edge";
    const what = {
      leaf: () => `${data.tasks[lane.x[i]] || "leaf"}, call ${lane.n[i]}`,
      wait: () => `wait on ${edge} for transfer ${lane.n[i]}${label}`,
      idle: () => `idle, waiting for${label}, ${edge}`,
      runtime: () => `runtime${label}, ${edge}`,
      journal: () => "journal",
      fetch: () => `fetch${label}, transfer ${lane.n[i]}`,
      store: () => `store${label}, transfer ${lane.n[i]}`,
      aside: () => label.trim(),
      asleep: () => label.trim(),
      woken: () => label.trim(),
      queue: () => `queued behind others${label}, transfer ${lane.n[i]}`,
    };
    return head + what[KINDS[kind]]() + decided(lane.worker, t);
  };
  const hover = (event) => {
    const text = describe(event.offsetX, event.offsetY);
    tip.hidden = text === null;
    if (text === null) return;
    tip.textContent = text;
    const frame = el("frame"), right = event.offsetX + 16 + tip.offsetWidth > frame.clientWidth;
    tip.style.left = `${right ? Math.max(4, event.offsetX - 12 - tip.offsetWidth) : event.offsetX + 16}px`;
    tip.style.top = `${event.offsetY + 14}px`;
  };

  const row = (cells, tag = "td") => {
    const tr = make("tr");
    for (const [text, className] of cells) tr.append(make(tag, text, className));
    return tr;
  };
  const jump = (stall) => {
    chosen = stall;
    const margin = Math.max(stall.length * 0.75, 10);
    show(stall.start - margin, stall.start + stall.length + margin);
    el("frame").scrollIntoView({ block: "nearest" });
  };

  const build = () => {
    el("title").textContent = `${data.program || "A run"} on ${data.machine || "a machine"}`;
    const dropped = data.dropped > 0 ? `, ${data.dropped} dropped` : "";
    el("facts").textContent = `${time(wall)}, ${data.workers.length} workers, ${data.records} records${dropped}`;
    const short = data.drawn_together_ns > 0
      ? ` Spans shorter than ${time(data.drawn_together_ns)} are drawn together.` : "";
    const ticks = data.decisions.length > 0 ? " Ticks above a row: the policy decided otherwise than before." : "";
    el("note").textContent = `Wheel or + and − zoom, drag or arrow keys move, 0 shows the whole run.${short}${ticks}`;
    const used = new Set();
    for (const lane of lanes) {
      lane.kind.forEach((kind) => used.add(kind));
      for (const parts of lane.g) parts.slice(1).forEach((ns, kind) => { if (ns > 0) used.add(kind); });
    }
    used.add(3);
    KINDS.forEach((name, kind) => {
      if (!used.has(kind)) return;
      const label = make("label"), box = make("input"), swatch = make("span", undefined, "swatch");
      box.type = "checkbox";
      box.checked = true;
      box.id = `kind-${name}`;
      box.addEventListener("change", () => {
        if (box.checked) filter.kinds.add(kind); else filter.kinds.delete(kind);
        refresh();
      });
      swatch.style.background = `var(--${name})`;
      label.append(box, swatch, LABELS[name]);
      el("kinds").append(label);
    });
    const choices = (id, names) => {
      names.forEach((name, i) => { const option = make("option", name); option.value = i; el(id).append(option); });
      el(id).addEventListener("change", () => { filter[id] = el(id).value; refresh(); });
    };
    choices("worker", data.workers.map((w) => w.name));
    choices("task", data.tasks);
    choices("edge", data.edges.map((e) => e.name));
    el("path").addEventListener("change", () => { filter.path = el("path").checked; refresh(); });
    el("in").addEventListener("click", () => zoom(0.5));
    el("out").addEventListener("click", () => zoom(2));
    el("all").addEventListener("click", () => { chosen = null; show(0, wall); });

    // Bars: leaf, waiting by edge, then the parts of overhead.
    const parts = [["leaf", "leaf work"], ["wait", "waiting"], ["idle", "idle"], ["journal", "journal"],
      ["runtime", "runtime"]];
    const legend = make("div", undefined, "legend"), bars = el("bars");
    const total = { name: "all workers", parts: parts.map(() => 0) };
    for (const worker of data.workers) worker.parts.forEach((ns, i) => { total.parts[i] += ns; });
    const all = wall * data.workers.length;
    parts.forEach(([kind, name], i) => {
      if (total.parts[i] <= 0) return;
      const item = make("span"), swatch = make("span", undefined, "swatch");
      swatch.style.background = `var(--${kind})`;
      item.append(swatch, ` ${name} ${percent(total.parts[i], all)}`);
      legend.append(item);
    });
    bars.append(legend);
    if (data.advice) bars.append(make("p", data.advice, "note"));
    const bar = (worker, whole, className) => {
      const line = make("div", undefined, `row ${className}`), stacked = make("div", undefined, "stack");
      worker.parts.forEach((ns, i) => {
        const piece = make("span");
        piece.style.width = `${100 * ns / whole}%`;
        piece.style.background = `var(--${parts[i][0]})`;
        piece.title = `${parts[i][1]} ${time(ns)}, ${percent(ns, whole)}`;
        stacked.append(piece);
      });
      line.append(make("span", worker.name, "name"), stacked, make("span", percent(worker.parts[0], whole), "value"));
      bars.append(line);
    };
    bar(total, all, "total");
    data.workers.forEach((worker) => bar(worker, wall, ""));

    for (const share of data.shares) {
      el("shares").append(row([[share.what], [time(share.ns), "number"], [percent(share.ns, wall), "number"]]));
    }
    el("edges").append(row([[""], ["busy", "number"], ["down", "number"], ["up", "number"], ["transfers", "number"],
      ["waiting", "number"], ["overhead", "number"]], "th"));
    for (const edge of data.edges) {
      const moved = (count) => count > 0 ? bytes(count) : "–";
      el("edges").append(row([[edge.name], [edge.transfers > 0 ? percent(edge.busy_ns, wall) : "–", "number"],
        [moved(edge.bytes_down), "number"], [moved(edge.bytes_up), "number"], [String(edge.transfers), "number"],
        [percent(edge.waited_ns, all), "number"], [percent(edge.overhead_ns, all), "number"]]));
    }
    const stalls = el("stalls");
    if (data.stalls.length === 0) stalls.append(row([["No worker ever stood still."]]));
    else stalls.append(row([["length", "number"], ["at", "number"], ["who"], ["edge"], ["for"], ["why"], ["avoided by"]], "th"));
    for (const stall of data.stalls) {
      const line = row([["", "number"], [time(stall.start), "number"], [stall.who, "name"], [stall.edge, "name"], [stall.what],
        [`${stall.cause}: ${stall.shown}`, "why"], [stall.remedy, "remedy"]]);
      const button = make("button", time(stall.length));
      button.title = "Show in the timeline";
      button.addEventListener("click", () => jump(stall));
      line.firstChild.append(button);
      stalls.append(line);
    }
  };

  build();
  readColours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); refresh(); });
  new ResizeObserver(refresh).observe(el("frame"));
  draw();
  // For tests and for consoles.
  window.multigrain = { data, view, filter, show, describe, frames: () => frames, lanes: () => shown().length,
    chosen: () => chosen };
})();
